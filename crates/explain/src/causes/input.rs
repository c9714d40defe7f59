//! What a Service says, each with the ways in which it could have said something else.

use super::Source;
use super::policy_inputs;
use model::kubernetes::{Affinity, Service, ServicePort, TargetPort, TrafficPolicy};
use model::world::Fact;
use model::{Family, Policy, Protocol, ServiceName, ServiceUid, World};
use plan::ask::annotation::{self, Kind, PREFIX};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// What a Service is planned on.
#[derive(Clone)]
pub(super) struct Setting {
    /// The Service.
    pub service: Service,
    /// Choices.
    pub policy: Policy,
    /// Everything else.
    pub world: World,
}

/// A setting with one thing altered.
type Alteration = Box<dyn Fn(&Setting) -> Setting>;

/// How an input is altered.
pub(super) struct Way {
    /// Whether the input goes or says something else.
    pub nature: Nature,
    /// What of the setting is altered.
    pub scope: Scope,
    /// Does it.
    pub alter: Alteration,
}

/// Whether an input goes or says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// It goes: what comes into being then is what it kept away.
    Removal,
    /// It says something else.
    Variation,
}

/// What of a setting is altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The Service alone.
    Service,
    /// What other Services are planned on, too.
    Everything,
}

/// How much hangs on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breadth {
    /// Some fields.
    Narrow,
    /// Nearly everything: it is named for a field only where nothing narrower is.
    Broad,
    /// Where resources are: it is in every id, and named once for each resource.
    Place,
}

/// Something that what becomes of a Service may depend on.
pub(super) struct Input {
    /// What it is.
    pub source: Source,
    /// What a finding calls it.
    pub key: String,
    /// How much hangs on it.
    pub breadth: Breadth,
    /// How it is altered: the first way that has an effect counts.
    pub ways: Vec<Way>,
}

impl Input {
    /// An input with one way.
    pub fn new(source: Source, key: &str, way: Way) -> Self {
        Self { source, key: key.to_owned(), breadth: Breadth::Narrow, ways: vec![way] }
    }

    /// Whether it could simply not be there.
    pub fn is_removable(&self) -> bool {
        self.ways.first().is_some_and(|way| way.nature == Nature::Removal)
    }

    /// The same, with nearly everything hanging on it.
    pub fn broad(self) -> Self {
        Self { breadth: Breadth::Broad, ..self }
    }

    /// The same, saying where resources are.
    pub fn of_place(self) -> Self {
        Self { breadth: Breadth::Place, ..self }
    }

    /// A field of the Service.
    fn field(path: &str, value: impl ToString, way: Way) -> Self {
        let source = Source::ServiceField { path: path.to_owned(), value: value.to_string() };
        Self::new(source, path, way)
    }
}

/// A way that alters the Service alone.
pub(super) fn on_service(nature: Nature, edit: impl Fn(&mut Service) + 'static) -> Way {
    let alter = move |setting: &Setting| {
        let mut setting = setting.clone();
        edit(&mut setting.service);
        setting
    };
    Way { nature, scope: Scope::Service, alter: Box::new(alter) }
}

/// A way that alters what all Services are planned on.
pub(super) fn on_all(nature: Nature, edit: impl Fn(&mut Setting) + 'static) -> Way {
    let alter = move |setting: &Setting| {
        let mut setting = setting.clone();
        edit(&mut setting);
        setting
    };
    Way { nature, scope: Scope::Everything, alter: Box::new(alter) }
}

/// Everything that a Service's part may depend on.
pub(super) fn inputs(service: &Service, policy: &Policy, world: &World) -> Vec<Input> {
    let mut all = annotations(service);
    all.extend(policy_inputs::inputs(policy));
    all.extend(fields(service));
    all.extend(facts(service, world));
    all
}

fn edit_annotations(service: &mut Service, edit: impl FnOnce(&mut BTreeMap<Arc<str>, Arc<str>>)) {
    edit(Arc::make_mut(&mut service.annotations));
}

/// Every annotation that is, or looks like, one of ours.
fn annotations(service: &Service) -> Vec<Input> {
    let ours = service.annotations.iter().filter(|(key, _)| annotation::short(key).is_some());
    ours.map(|(key, value)| {
        let source = Source::Annotation { key: Arc::clone(key), value: Arc::clone(value) };
        let mut ways = vec![removal(key)];
        let short = annotation::short(key).unwrap_or(key);
        let known = annotation::find(short);
        if known.is_some_and(|found| found.annotation.kind == Kind::Text) {
            for other in others(value) {
                let key = Arc::clone(key);
                ways.push(on_service(Nature::Variation, move |s| {
                    let other = Arc::from(other.as_str());
                    edit_annotations(s, |all| all.extend([(Arc::clone(&key), other)]));
                }));
            }
        }
        let breadth = match short {
            "azure-load-balancer-internal" => Breadth::Broad,
            _ => Breadth::Narrow,
        };
        Input { source, key: key.to_string(), breadth, ways }
    })
    .collect()
}

fn removal(key: &Arc<str>) -> Way {
    let key = Arc::clone(key);
    on_service(Nature::Removal, move |s| {
        edit_annotations(s, |all| {
            all.remove(&key);
        });
    })
}

/// What an annotation could say instead. Values that are refused tell nothing.
fn others(value: &str) -> Vec<String> {
    match value.trim() {
        number if number.parse::<u16>().is_ok() => {
            let number: u16 = number.parse().unwrap_or(0);
            vec![number.saturating_add(1).to_string(), number.saturating_sub(1).to_string()]
        }
        tcp if tcp.eq_ignore_ascii_case("tcp") => vec!["http".to_owned()],
        http if http.to_lowercase().starts_with("http") => vec!["tcp".to_owned()],
        text => vec![format!("{text}x")],
    }
}

/// What could be set and is not: what tells of a default how to change it.
pub(super) fn offers(service: &Service, policy: &Policy) -> Vec<(String, Way)> {
    /// Values for keys that are no flags.
    const SAMPLES: [(&str, &str); 6] = [
        ("azure-load-balancer-tcp-idle-timeout", "27"),
        ("azure-load-balancer-health-probe-interval", "17"),
        ("azure-load-balancer-health-probe-num-of-probe", "3"),
        ("azure-load-balancer-health-probe-protocol", "http"),
        ("azure-allowed-service-tags", "AzureCloud"),
        ("azure-allowed-ip-ranges", "198.18.0.0/15"),
    ];
    let flags = annotation::TABLE
        .iter()
        .filter(|a| matches!(a.kind, Kind::Flag(_)))
        .map(|a| (a.key, "true"));
    let whole = annotation::full;
    let mut all: Vec<(String, Way)> = flags
        .chain(SAMPLES)
        .filter(|(key, _)| !key.contains(annotation::PORT))
        .filter(|(key, _)| !service.annotations.contains_key(whole(key).as_str()))
        .map(|(key, value)| {
            let whole = whole(key);
            let way = on_service(Nature::Variation, move |s| {
                let entry = (Arc::from(whole.as_str()), Arc::from(value));
                edit_annotations(s, |all| all.extend([entry]));
            });
            (format!("annotation {key}"), way)
        })
        .collect();
    if service.source_ranges.is_empty() {
        let way = on_service(Nature::Variation, |s| s.source_ranges = vec!["198.18.0.0/15".into()]);
        all.push(("spec.loadBalancerSourceRanges".to_owned(), way));
    }
    if service.traffic_policy == TrafficPolicy::Cluster {
        let way = on_service(Nature::Variation, |s| {
            s.traffic_policy = TrafficPolicy::Local;
            s.health_check_node_port = Some(32_000);
        });
        all.push(("spec.externalTrafficPolicy".to_owned(), way));
    }
    let keys = policy_inputs::offers(policy).into_iter();
    all.extend(keys.map(|(key, way)| (format!("config {key}"), way)));
    all
}

/// Fields of the Service. Nothing is left out but what only says how far it is.
fn fields(service: &Service) -> Vec<Input> {
    let Service {
        uid,
        name,
        revision: _,
        wish: _,
        load_balancer_type: _,
        deletion: _,
        finalizers: _,
        annotations: _,
        labels,
        ports,
        families,
        affinity,
        traffic_policy,
        health_check_node_port,
        load_balancer_ip,
        source_ranges,
        // Only says which Pods wait for their readiness gates.
        selector: _,
        ingress: _,
        condition: _,
        moving: _,
        custody: _,
        editors: _,
        // Only says which addresses others may not name.
        cluster_ips: _,
    } = service;
    let mut all = vec![];
    for (at, port) in ports.iter().enumerate() {
        all.extend(port_inputs(at, port, ports.len()));
    }
    all.extend(family_inputs(families));
    all.push(affinity_input(*affinity));
    if *traffic_policy == TrafficPolicy::Local {
        let way = on_service(Nature::Removal, |s| s.traffic_policy = TrafficPolicy::Cluster);
        all.push(Input::field("spec.externalTrafficPolicy", "Local", way));
    }
    if let Some(port) = health_check_node_port {
        let old = *port;
        let way = on_service(Nature::Variation, move |s| {
            let new = old.checked_add(1).unwrap_or(30_000);
            s.health_check_node_port = Some(new);
            rename_port(s, old, new);
        });
        all.push(Input::field("spec.healthCheckNodePort", old, way));
    }
    if let Some(address) = load_balancer_ip {
        let way = on_service(Nature::Removal, |s| s.load_balancer_ip = None);
        all.push(Input::field("spec.loadBalancerIP", address, way));
    }
    if !source_ranges.is_empty() {
        let way = on_service(Nature::Removal, |s| s.source_ranges.clear());
        all.push(Input::field("spec.loadBalancerSourceRanges", source_ranges.join(","), way));
    }
    if !labels.is_empty() {
        let text: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let way = on_service(Nature::Removal, |s| s.labels = Arc::default());
        all.push(Input::field("metadata.labels", text.join(","), way));
    }
    all.push(Input::field("metadata.name", name, renamed(name)));
    all.push(Input::field("metadata.uid", uid, reborn(uid)));
    all
}

fn affinity_input(affinity: Affinity) -> Input {
    let text = match affinity {
        Affinity::None => "None",
        Affinity::ClientIp => "ClientIP",
    };
    let way = on_service(Nature::Variation, |s| {
        s.affinity = match s.affinity {
            Affinity::None => Affinity::ClientIp,
            Affinity::ClientIp => Affinity::None,
        }
    });
    Input::field("spec.sessionAffinity", text, way)
}

fn port_inputs(at: usize, port: &ServicePort, count: usize) -> Vec<Input> {
    let ServicePort { name: _, protocol, port: number, target_port, node_port, app_protocol } =
        port;
    let path = |field: &str| format!("spec.ports[{at}]{field}");
    let vary = |edit: fn(&mut ServicePort)| {
        on_service(Nature::Variation, move |s| {
            if let Some(port) = s.ports.get_mut(at) {
                edit(port);
            }
        })
    };
    let mut all = Vec::new();
    if count > 1 {
        let way = on_service(Nature::Removal, move |s| {
            if at < s.ports.len() {
                s.ports.remove(at);
            }
        });
        let value = format!("{} {number}", protocol.name());
        all.push(Input::field(&path(""), value, way));
    }
    let old = *number;
    let way = on_service(Nature::Variation, move |s| {
        let taken = |n: u16| s.ports.iter().any(|p| p.port == n);
        // Far from the ports that others are likely to have.
        let mut far = (4_099..u16::MAX).map(|distance| old.wrapping_add(distance));
        let Some(new) = far.find(|n| *n > 1 && !taken(*n)) else { return };
        if let Some(port) = s.ports.get_mut(at) {
            port.port = new;
        }
        rename_port(s, old, new);
    });
    all.push(Input::field(&path(".port"), old, way));
    all.push(Input::field(
        &path(".protocol"),
        protocol.name(),
        vary(|p| {
            p.protocol = match p.protocol {
                Protocol::Tcp => Protocol::Udp,
                Protocol::Udp | Protocol::Sctp => Protocol::Tcp,
            }
        }),
    ));
    let target = match target_port {
        TargetPort::Number(0) => number.to_string(),
        TargetPort::Number(number) => number.to_string(),
        TargetPort::Name(name) => name.to_string(),
    };
    all.push(Input::field(
        &path(".targetPort"),
        target,
        vary(|p| {
            p.target_port = TargetPort::Number(match p.target_port {
                TargetPort::Number(0) => p.port.checked_add(7).unwrap_or(1),
                TargetPort::Number(n) => n.checked_add(7).unwrap_or(1),
                TargetPort::Name(_) => 8_087,
            });
        }),
    ));
    if let Some(number) = node_port {
        let way = vary(|p| p.node_port = p.node_port.map(|n| n.checked_add(7).unwrap_or(30_007)));
        all.push(Input::field(&path(".nodePort"), number, way));
    }
    if let Some(protocol) = app_protocol {
        all.push(Input::field(&path(".appProtocol"), protocol, vary(|p| p.app_protocol = None)));
    }
    all
}

/// Annotations that name a port go with it.
fn rename_port(service: &mut Service, old: u16, new: u16) {
    let (from, to) = (format!("{PREFIX}port_{old}_"), format!("{PREFIX}port_{new}_"));
    let all = service.annotations.iter().map(|(key, value)| {
        let key = match key.strip_prefix(from.as_str()) {
            Some(rest) => Arc::from(format!("{to}{rest}")),
            None => Arc::clone(key),
        };
        (key, Arc::clone(value))
    });
    service.annotations = Arc::new(all.collect());
}

/// One family becomes the other; of two, each goes once.
fn family_inputs(families: &[Family]) -> Vec<Input> {
    let names: Vec<&str> = families.iter().map(|f| f.name()).collect();
    let text = names.join(",");
    let only = |family: Family| {
        let way = on_service(Nature::Variation, move |s| s.families = vec![family]);
        Input::field("spec.ipFamilies", &text, way).broad()
    };
    match families {
        [Family::V6] => vec![only(Family::V4)],
        [] | [_] => vec![only(Family::V6)],
        _ => vec![only(Family::V4), only(Family::V6)],
    }
}

fn renamed(name: &ServiceName) -> Way {
    let old = name.clone();
    on_all(Nature::Variation, move |setting| {
        let new = ServiceName::new(&old.namespace, format!("{}-x", old.name));
        setting.service.name = new.clone();
        for slice in setting.world.kubernetes.slices.values_mut() {
            if slice.service.as_ref() == Some(&old) {
                Arc::make_mut(slice).service = Some(new.clone());
            }
        }
    })
}

/// The same Service under another UID, with its EndpointSlices.
fn reborn(uid: &ServiceUid) -> Way {
    let old = uid.clone();
    on_all(Nature::Variation, move |setting| {
        let mut text = old.to_string();
        let first = if text.starts_with('f') { "e" } else { "f" };
        if text.is_char_boundary(1) && !text.is_empty() {
            text.replace_range(..1, first);
        }
        let new = ServiceUid::new(text);
        setting.service.uid = new.clone();
        for slice in setting.world.kubernetes.slices.values_mut() {
            if slice.owner.as_ref() == Some(&old) {
                Arc::make_mut(slice).owner = Some(new.clone());
            }
        }
    })
}

/// What stands around the Service.
fn facts(service: &Service, world: &World) -> Vec<Input> {
    let mut all = Vec::new();
    let count = world.kubernetes.nodes.len();
    if count > 0 {
        let way = on_all(Nature::Variation, |s| s.world.kubernetes.nodes.clear());
        all.push(Input::new(Source::Nodes { count }, "nodes", way));
    }
    let of = service.clone();
    let is_ours = move |slice: &model::kubernetes::EndpointSlice| slice.is_of(&of);
    let slices: Vec<_> = world.kubernetes.slices.values().filter(|s| is_ours(s)).collect();
    if !slices.is_empty() {
        let endpoints: BTreeSet<_> =
            slices.iter().flat_map(|s| &s.endpoints).map(|e| e.address).collect();
        let way = on_all(Nature::Variation, move |s| {
            s.world.kubernetes.slices.retain(|_, slice| !is_ours(slice));
        });
        let source = Source::EndpointSlices { endpoints: endpoints.len() };
        all.push(Input::new(source, "endpointslices", way));
    }
    let namespace = Arc::clone(&service.name.namespace);
    if world.kubernetes.namespaces.get(&namespace).is_some_and(|labels| !labels.is_empty()) {
        let source = Source::Namespace { name: Arc::clone(&namespace) };
        let way = on_all(Nature::Removal, move |s| {
            s.world.kubernetes.namespaces.insert(Arc::clone(&namespace), Arc::default());
        });
        all.push(Input::new(source, "namespaces", way));
    }
    let way = on_all(Nature::Variation, |s| s.world.azure.zones = Fact::Known(Vec::new()));
    all.push(Input::new(Source::Azure { what: "the region's zones" }, "zones", way));
    if let Some(way) = other_addresses(world) {
        all.push(Input::new(Source::Azure { what: "the public IP's address" }, "address", way));
    }
    all
}

/// Public IPs that stand get other addresses.
fn other_addresses(world: &World) -> Option<Way> {
    let known = world.azure.public_ips.values().filter_map(Fact::known);
    known.flat_map(|all| all.values()).find(|ip| ip.address.is_some())?;
    Some(on_all(Nature::Variation, |setting| {
        let mut count = 0_u16;
        let facts = setting.world.azure.public_ips.values_mut().filter_map(Fact::known_mut);
        for ip in facts.flat_map(|all| all.values_mut()) {
            count = count.wrapping_add(1);
            let [high, low] = count.to_be_bytes();
            let new = match ip.family {
                Family::V4 => Ipv4Addr::new(198, 18, high, low).into(),
                Family::V6 => Ipv6Addr::new(0x2001, 0xdb8, 0xfff, 0, 0, 0, 0, count).into(),
            };
            if ip.address.is_some() {
                Arc::make_mut(ip).address = Some(new);
            }
        }
    }))
}
