//! Whose a resource is, by its name, its tags and the cluster's UID. Planning, `orphans`,
//! `explain`, drift and the check of plans all ask here. This room never decides what becomes of a
//! resource.
//!
//! # Guarantees
//! - A resource that carries another cluster's UID is never this cluster's, whatever its name and
//!   its other tags say.
//! - A resource group that only a Service names (`azure-load-balancer-resource-group`,
//!   `azure-pls-resource-group`) may be another cluster's. A resource there is this cluster's only
//!   if it carries this cluster's UID or, where it is older than that tag, if a Service of this
//!   cluster stands behind it: the UID of such a Service is in its name or in the name of its
//!   frontend. A tag with a Service's name says nothing there, because clusters have Services of
//!   equal names.
//! - In the resource groups of the cloud config a resource without UID is this cluster's by its
//!   cluster name, as for the Go cloud provider, whose resources carry no UID.
//!
//! # Assumptions
//! Two clusters that share a resource group in their cloud configs have different cluster names.

mod base;
pub mod borne;
pub mod name;
pub mod other_layout;
pub mod part;
pub(crate) mod parts;
pub mod pod_names;
pub mod tags;

pub use base::{Base, is_named_after_one};

use crate::tag_keys::UID;
use model::azure::{FrontendAddress, LoadBalancer, PrivateLinkService, PublicIp, Tags};
use model::kubernetes::{GATEWAY_FINALIZER, SERVICE_FINALIZER, Service};
use model::policy::Layout;
use model::world::Fact;
use model::{Group, Policy, ResourceId, ServiceUid, World};
use name::{base_of, is_common_pool};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whose a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This cluster's: it may be changed and deleted.
    Ours,
    /// No controller's: a BYO public IP. Never deleted.
    Unmarked,
    /// In a resource group of the cloud config, with another cluster's name. A Service that names
    /// it may stand on it and is added to its tag, as with the Go cloud provider. Never deleted.
    OtherName,
    /// Another cluster's, or nothing proves that it is not. Never changed, never deleted.
    Foreign,
}

/// Whose a part of a resource is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner<'a> {
    /// A Service of this cluster's.
    Ours(&'a ServiceUid),
    /// That of a Service that is gone: it may be taken away.
    Orphaned,
    /// Others', or that of a Service about which nothing is known.
    Foreign,
}

/// Answers whose a resource is.
#[derive(Debug)]
pub struct Own<'w> {
    world: &'w World,
    policy: &'w Policy,
    /// Services of this cluster by base name and by name, folded; collected when first needed.
    services: OnceCell<BTreeMap<String, &'w ServiceUid>>,
}

/// What the UID tag of a resource says.
enum Mark {
    None,
    Ours,
    Other,
    /// There is one, and this cluster's own UID is not known.
    Unproven,
}

impl<'w> Own<'w> {
    /// Judges by what is known of the cluster.
    pub fn new(world: &'w World, policy: &'w Policy) -> Self {
        Self { world, policy, services: OnceCell::new() }
    }

    /// Whose a public IP is.
    pub fn public_ip(&self, ip: &PublicIp) -> Whose {
        let managed = tags::is_managed(ip);
        let marked = |whose| if managed { whose } else { Whose::Unmarked };
        match self.mark(ip.tags.as_ref()) {
            Mark::Ours => return marked(Whose::Ours),
            Mark::Other => return Whose::Foreign,
            Mark::Unproven if self.is_named_after_ours(ip) => return marked(Whose::Ours),
            Mark::Unproven => return Whose::Foreign,
            Mark::None if !managed => return Whose::Unmarked,
            Mark::None => {}
        }
        match (ip.id.is_in(&self.policy.group), self.is_of_name(ip)) {
            (true, true) => Whose::Ours,
            (true, false) => Whose::OtherName,
            (false, true) if self.is_named_after_ours(ip) => Whose::Ours,
            (false, _) => Whose::Foreign,
        }
    }

    /// Whether the tag of a public IP has this cluster's name, or none.
    fn is_of_name(&self, ip: &PublicIp) -> bool {
        let cluster = tags::cluster(ip).unwrap_or("");
        cluster.is_empty() || cluster.eq_ignore_ascii_case(&self.policy.cluster)
    }

    /// Whether a public IP may be this cluster's, whatever Services it has or had.
    fn may_be_ours(&self, ip: &PublicIp) -> bool {
        match self.mark(ip.tags.as_ref()) {
            Mark::Ours | Mark::Unproven => true,
            Mark::Other => false,
            Mark::None => self.is_of_name(ip),
        }
    }

    /// Whether a public IP is this cluster's by its resource group and the cluster's name alone,
    /// whatever Services there are.
    pub(crate) fn is_ours_by_name(&self, ip: &PublicIp) -> bool {
        matches!(self.mark(ip.tags.as_ref()), Mark::None)
            && ip.id.is_in(&self.policy.group)
            && self.public_ip(ip) == Whose::Ours
    }

    /// Whose a Private Link Service is.
    pub fn private_link(&self, link: &PrivateLinkService) -> Whose {
        let tags = link.tags.as_ref();
        let proven = |yes: bool| if yes { Whose::Ours } else { Whose::Foreign };
        match self.mark(tags) {
            Mark::Ours => return Whose::Ours,
            Mark::Other => return Whose::Foreign,
            Mark::Unproven => return proven(self.is_before_ours(link)),
            Mark::None => {}
        }
        let cluster = tags.and_then(|t| tags::ours(t, tags::CLUSTER));
        let named = cluster.is_some_and(|c| c.eq_ignore_ascii_case(&self.policy.cluster));
        let own_group = link.id.is_in(&self.policy.private_link_group);
        proven(named && (own_group || self.is_before_ours(link)))
    }

    /// Whether tags carry the UID of another cluster.
    pub fn is_another_clusters(&self, tags: Option<&Tags>) -> bool {
        matches!(self.mark(tags), Mark::Other)
    }

    /// Whether a public IP stands on a frontend that is named after a Service of this cluster.
    pub fn is_on_our_frontend(&self, ip: &PublicIp) -> bool {
        let frontends = self.world.azure.balancers.each().flat_map(|b| &b.frontends);
        let address = FrontendAddress::Public(ip.id.clone());
        let mut frontends = frontends.filter(|f| f.address == address);
        frontends.any(|f| base_of(&f.name).is_some_and(|base| self.knows(base)))
    }

    /// Adds this cluster's UID to the tags of a resource that is written anyway. Resources in the
    /// groups of the cloud config stay as the Go cloud provider makes them.
    pub fn sign(&self, id: &ResourceId, own: &Group, tags: &mut Option<Tags>) {
        let Some(uid) = &self.world.kubernetes.cluster_uid else { return };
        if !id.is_in(own) {
            tags::set(tags.get_or_insert_default(), UID, uid);
        }
    }

    fn mark(&self, tags: Option<&Tags>) -> Mark {
        let tag = tags.and_then(|t| model::azure::tag(t, UID)).map(str::trim);
        match (tag.filter(|tag| !tag.is_empty()), &self.world.kubernetes.cluster_uid) {
            (None, _) => Mark::None,
            (Some(_), None) => Mark::Unproven,
            (Some(tag), Some(uid)) if tag.eq_ignore_ascii_case(uid) => Mark::Ours,
            (Some(_), Some(_)) => Mark::Other,
        }
    }

    /// Whether the name of a public IP is made from the UID of a Service of this cluster; where it
    /// is made from none, whether every Service that its tag names is one. In a group that only a
    /// Service names the tag does not count: nothing is adopted there, and a public IP that another
    /// cluster has adopted bears the names of that cluster's Services.
    fn is_named_after_ours(&self, ip: &PublicIp) -> bool {
        if let Some(base) = base_in(ip.id.name()) {
            return self.knows(base);
        }
        if !ip.id.is_in(&self.policy.group) {
            return false;
        }
        let mut users = tags::each_user(ip).peekable();
        users.peek().is_some() && users.all(|user| self.knows(user))
    }

    /// Whether a Private Link Service stands before a frontend of this cluster: one that is named
    /// after a Service, or one of a load balancer of ours with an owner that is a Service.
    fn is_before_ours(&self, link: &PrivateLinkService) -> bool {
        let owned = tags::owner(link).is_some_and(|owner| self.knows(owner));
        let listed = self.world.azure.balancers.known();
        link.frontends.iter().any(|frontend| {
            let Some(balancer) = frontend.parent() else { return false };
            balancer == self.policy.balancer_id(balancer.name())
                && (base_of(frontend.name()).is_some_and(|base| self.knows(base))
                    || (owned && listed.is_some_and(|all| all.contains_key(&balancer))))
        })
    }

    /// Whether a base name or a name is that of a Service of this cluster, or of one that is known
    /// to be gone.
    fn knows(&self, name: &str) -> bool {
        self.service(name).is_some() || is_abandoned(self.world, name)
    }

    /// The Service of this cluster with this base name or name.
    fn service(&self, name: &str) -> Option<&'w ServiceUid> {
        let services = self.services.get_or_init(|| {
            let all = self.world.kubernetes.services.values();
            let names = all.flat_map(|s| {
                let names = [s.uid.base_name(), s.name.to_string()];
                names.map(|name| (name.to_lowercase(), &s.uid))
            });
            names.collect()
        });
        services.get(name.to_lowercase().as_str()).copied()
    }
}

/// Whether what bears a Service's name may be taken away although no such Service is known.
pub(crate) fn is_abandoned(world: &World, name: &str) -> bool {
    world.abandoned.contains(name::folded(name).as_str())
}

/// The base name of a Service in a public IP's name: at its start, or behind a dash.
fn base_in(name: &str) -> Option<&str> {
    let starts = std::iter::once(0).chain(name.match_indices('-').map(|(at, _)| at + 1));
    starts.filter_map(|at| name.get(at..)).find_map(base_of)
}

/// The finalizers a Service of ours carries: they say that something of it may stand.
pub(crate) fn finalizers(policy: &Policy) -> &'static [&'static str] {
    match policy.layout {
        Layout::PerService => &[SERVICE_FINALIZER, GATEWAY_FINALIZER],
        Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => &[SERVICE_FINALIZER],
    }
}

/// Whether a Service carries every finalizer that must be there before the first Azure write.
pub(crate) fn is_claimed(policy: &Policy, service: &Service) -> bool {
    finalizers(policy).iter().all(|f| service.has_finalizer(f))
}

/// Whether nothing but our own pools is on a load balancer, or nothing at all: its last Service has
/// left it, or a write was cut short, or whoever was to join it does not.
pub(crate) fn is_shell(policy: &Policy, balancer: &LoadBalancer) -> bool {
    balancer.frontends.is_empty()
        && balancer.rules.is_empty()
        && balancer.probes.is_empty()
        && balancer.foreign.is_empty()
        && balancer.pools.iter().all(|pool| is_common_pool(&policy.cluster, &pool.name))
}

/// Public IPs of every group that has been read.
pub fn public_ips(world: &World) -> impl Iterator<Item = &Arc<PublicIp>> {
    world.azure.public_ips.values().flat_map(Fact::each)
}

#[cfg(test)]
mod tests;
