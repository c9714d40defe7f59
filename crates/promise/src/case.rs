//! All Services, what they ask for and where their things are: read once, judged by every file.

use crate::asks::{self, Asks, Family, Invalid};
use crate::estate::{Estate, group_of, parts, same, text};
use crate::nodes::Node;
use crate::site::{Layout, Site};
use crate::{Broken, Scene, contest, holds, links, names};
use serde_json::Value;
use std::collections::BTreeMap;

/// What becomes of a Service's wishes.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It wants no load balancer of ours: another type, another class, or it is being deleted.
    Unwanted,
    /// Its wishes are wrong by themselves, or its owner holds it back; it keeps what it has.
    Refused(Invalid),
    /// Its wishes are in order, but Azure or another Service stands in the way.
    Denied(Asks, String),
    /// Every wish is to be kept.
    Served(Asks),
}

/// A Service.
#[derive(Clone, Debug)]
pub(crate) struct Service<'a> {
    /// `namespace/name`.
    pub(crate) key: String,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// How the names of its parts begin.
    pub(crate) base: String,
    pub(crate) object: &'a Value,
    pub(crate) fate: Fate,
}

/// Where a frontend of a Service stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The load balancer.
    pub(crate) balancer: &'a Value,
    /// The frontend on it.
    pub(crate) frontend: &'a Value,
}

/// Everything that is judged.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) site: Site,
    pub(crate) estate: Estate<'a>,
    pub(crate) services: Vec<Service<'a>>,
    /// Nodes, in the order of their names.
    pub(crate) nodes: Vec<Node<'a>>,
    /// Frontends that stand, by the Service's key and family.
    pub(crate) places: BTreeMap<(String, Family), Place<'a>>,
}

impl<'a> Service<'a> {
    fn read(object: &'a Value, site: &Site, own: Option<&str>) -> Self {
        let meta = &object["metadata"];
        let (namespace, name) = (text(&meta["namespace"]), text(&meta["name"]));
        let spec = &object["spec"];
        let class = &spec["loadBalancerClass"];
        let wants = text(&spec["type"]) == "LoadBalancer"
            && (class.is_null() || (own.is_some() && class.as_str() == own))
            && meta["deletionTimestamp"].is_null();
        let fate = if wants {
            match (holds::paused(object), asks::read(object, site)) {
                (Some(why), _) => Fate::Refused(why),
                (None, Ok(asks)) => Fate::Served(asks),
                (None, Err(invalid)) => Fate::Refused(invalid),
            }
        } else {
            holds::kept(object, own).map_or(Fate::Unwanted, Fate::Refused)
        };
        Self {
            key: format!("{namespace}/{name}"),
            namespace,
            name,
            base: names::base(text(&meta["uid"])),
            object,
            fate,
        }
    }

    /// A promise to this Service that is not kept.
    pub(crate) fn broken(&self, promise: &'static str, text: impl Into<String>) -> Broken {
        Broken { service: Some(self.key.clone()), promise, text: text.into() }
    }

    /// What it asks for, where every wish is to be kept.
    pub(crate) fn served(&self) -> Option<&Asks> {
        match &self.fate {
            Fate::Served(asks) => Some(asks),
            _ => None,
        }
    }

    /// What it asks for, whether or not that can be had.
    pub(crate) fn asks(&self) -> Option<&Asks> {
        match &self.fate {
            Fate::Served(asks) | Fate::Denied(asks, _) => Some(asks),
            Fate::Unwanted | Fate::Refused(_) => None,
        }
    }

    /// Whether it wants a load balancer of ours, whatever becomes of that.
    pub(crate) fn wants(&self) -> bool {
        !matches!(self.fate, Fate::Unwanted)
    }
}

impl<'a> Case<'a> {
    /// A resource as it stood before the cluster's first Service.
    pub(crate) fn before(&self, id: &str) -> Option<&'a Value> {
        let mut all = self.scene.before.iter();
        all.find(|resource| same(text(&resource["id"]), id)).map(|resource| &**resource)
    }

    pub(crate) fn read(scene: &'a Scene) -> Self {
        let site = Site::read(&scene.config, &scene.cluster);
        let estate = Estate::read(&scene.resources);
        let own = scene.class.as_deref();
        let services = scene.services.iter().map(|s| Service::read(s, &site, own)).collect();
        let nodes = scene.nodes.iter().map(|node| Node::read(node, &site, &estate));
        let mut nodes: Vec<Node<'_>> = nodes.collect();
        nodes.sort_by_key(|node| node.name);
        let places = BTreeMap::new();
        let mut case = Self { scene, site, estate, services, nodes, places };
        links::hold(&mut case);
        contest::settle(&mut case);
        case
    }

    /// Services whose wishes are to be kept, with these.
    pub(crate) fn served(&self) -> impl Iterator<Item = (&Service<'a>, &Asks)> {
        self.services.iter().filter_map(|s| s.served().map(|asks| (s, asks)))
    }

    /// Where a Service's frontend of a family stands, if it does.
    pub(crate) fn place(&self, service: &Service<'_>, family: Family) -> Option<Place<'a>> {
        self.places.get(&(service.key.clone(), family)).copied()
    }

    /// The address of a Service's frontend of a family, once Azure has one.
    pub(crate) fn address(&self, service: &Service<'_>, family: Family) -> Option<&'a str> {
        self.address_of(self.place(service, family)?.frontend)
    }

    /// The address of a frontend: its own, or that of its public IP.
    pub(crate) fn address_of(&self, frontend: &'a Value) -> Option<&'a str> {
        let inside = &frontend["properties"];
        let own = inside["privateIPAddress"].as_str();
        own.or_else(|| {
            let ip = self.estate.get(text(&inside["publicIPAddress"]["id"]))?;
            ip["properties"]["ipAddress"].as_str()
        })
    }

    /// Whether a load balancer is one that the cloud config names, or a node set.
    pub(crate) fn is_balancer_of_ours(&self, id: &str) -> bool {
        let name = names::public_name(id);
        let named = match &self.site.layout {
            Layout::Single | Layout::Container => same(name, &self.site.balancer_name),
            Layout::PerSet { .. } => {
                let mut sets = self.nodes.iter().filter_map(|node| node.set.as_deref());
                same(name, &self.site.balancer_name)
                    || sets.any(|set| same(set, name))
                    || self.has_parts_of_ours(id)
            }
            Layout::Several(all) => all.iter().any(|element| same(&element.name, name)),
        };
        named && same(group_of(id), &self.site.balancer_group)
    }

    fn has_parts_of_ours(&self, balancer: &str) -> bool {
        let balancer = self.estate.get(balancer);
        let parts = balancer.into_iter().flat_map(|b| parts(b, "frontendIPConfigurations"));
        let mut names = parts.map(|frontend| text(&frontend["name"]));
        names.any(|name| names::base_of(name).is_some())
    }
}
