//! Which way traffic takes: Service → frontend → rule and probe → pool → nodes or pods.

mod draw;

pub(crate) use draw::whole_url;
pub use draw::{draw, service_url};

use crate::view::ServiceLine;
use model::azure::{
    AdminState, Frontend, FrontendAddress, LoadBalancer, Pool, Probe, ProbeProtocol, Rule,
    RuleProtocol,
};
use model::report::State;
use model::world::Fact;
use model::{ResourceId, ServiceName, ServiceUid, World};
use plan::own::Base;
use std::collections::BTreeMap;

/// Rules of a Service that are drawn; the others are counted.
const RULES: usize = 16;
/// Members of a pool that are drawn; the others are counted.
const MEMBERS: usize = 8;

/// A load balancer with those of its Services that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalancerTree {
    /// Its name; empty for Services that have nothing in Azure yet.
    pub name: String,
    /// Its SKU.
    pub sku: &'static str,
    /// Services.
    pub services: Vec<ServiceTree>,
    /// Pools that their rules lead to.
    pub pools: Vec<PoolTree>,
}

/// A Service's part of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTree {
    /// Namespace and name.
    pub name: ServiceName,
    /// How far it is.
    pub state: State,
    /// Its frontends.
    pub frontends: Vec<FrontendTree>,
}

/// A frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontendTree {
    /// Its name.
    pub name: String,
    /// Its address, once there is one.
    pub address: Option<String>,
    /// The Service's rules on it.
    pub rules: Vec<RuleTree>,
    /// Rules left out.
    pub more: usize,
}

/// A rule and its probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTree {
    /// Its name.
    pub name: String,
    /// As `TCP 80 → 8080`.
    pub ports: String,
    /// As `probes HTTP 31000 /healthz`.
    pub probe: Option<String>,
    /// Place of its pool in [`BalancerTree::pools`].
    pub pool: Option<usize>,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolTree {
    /// Its name.
    pub name: String,
    /// Its members, as far as drawn: name and address.
    pub members: Vec<(String, String)>,
    /// All of its members.
    pub count: usize,
}

/// The trees of these Services, by load balancer.
#[must_use]
pub fn trees(world: &World, shown: &[&ServiceLine]) -> Vec<BalancerTree> {
    let bases: BTreeMap<Base, usize> =
        shown.iter().enumerate().map(|(at, s)| (Base::of_service(&s.uid), at)).collect();
    let uids: BTreeMap<String, usize> =
        shown.iter().enumerate().map(|(at, s)| (s.uid.as_str().to_lowercase(), at)).collect();
    let owner = |balancer: &LoadBalancer, name: &str| {
        // Of the container load balancer, everything is one Service's.
        let whole = uids.get(&balancer.id.name().to_lowercase());
        let part = || Base::of(name).and_then(|base| bases.get(&base));
        whole.or_else(part).copied()
    };
    let mut placed = vec![false; shown.len()];
    let mut trees = Vec::new();
    for balancer in world.azure.balancers.known().into_iter().flat_map(BTreeMap::values) {
        let mut tree = BalancerTree {
            name: balancer.id.name().to_owned(),
            sku: balancer.sku.name(),
            ..BalancerTree::default()
        };
        let mut parts: BTreeMap<usize, Part<'_>> = BTreeMap::new();
        for frontend in &balancer.frontends {
            if let Some(at) = owner(balancer, &frontend.name) {
                parts.entry(at).or_default().frontends.push(frontend);
            }
        }
        for rule in &balancer.rules {
            if let Some(at) = owner(balancer, &rule.name) {
                parts.entry(at).or_default().rules.push(rule);
            }
        }
        for (at, part) in parts {
            let Some(line) = shown.get(at) else { continue };
            placed[at] = true;
            let tree = &mut Builder { world, balancer, tree: &mut tree };
            tree.service(line, part);
        }
        if !tree.services.is_empty() {
            trees.push(tree);
        }
    }
    let absent = shown.iter().zip(&placed).filter(|(_, placed)| !**placed);
    let absent: Vec<ServiceTree> = absent
        .map(|(s, _)| ServiceTree { name: s.name.clone(), state: s.state, frontends: Vec::new() })
        .collect();
    if !absent.is_empty() {
        trees.push(BalancerTree { services: absent, ..BalancerTree::default() });
    }
    trees
}

/// What a Service has of a load balancer.
#[derive(Default)]
struct Part<'a> {
    frontends: Vec<&'a Frontend>,
    rules: Vec<&'a Rule>,
}

struct Builder<'a> {
    world: &'a World,
    balancer: &'a LoadBalancer,
    tree: &'a mut BalancerTree,
}

impl Builder<'_> {
    fn service(&mut self, line: &ServiceLine, part: Part<'_>) {
        let mut frontends: Vec<&Frontend> = part.frontends;
        // A Service may put its rules on a frontend that another one made.
        for rule in &part.rules {
            let used = rule.frontend.as_ref().map(ResourceId::name);
            let is_used = |f: &Frontend| used.is_some_and(|u| f.name.eq_ignore_ascii_case(u));
            if !frontends.iter().any(|f| is_used(f)) {
                frontends.extend(self.balancer.frontends.iter().find(|f| is_used(f)));
            }
        }
        let frontends = frontends.into_iter().map(|frontend| {
            let on_it = |rule: &&&Rule| {
                let used = rule.frontend.as_ref().map(ResourceId::name);
                used.is_some_and(|u| frontend.name.eq_ignore_ascii_case(u))
            };
            let rules: Vec<&Rule> = part.rules.iter().filter(on_it).copied().collect();
            let drawn = rules.iter().take(RULES).map(|r| self.rule(&line.uid, r)).collect();
            FrontendTree {
                name: frontend.name.to_string(),
                address: address(self.world, frontend),
                rules: drawn,
                more: rules.len().saturating_sub(RULES),
            }
        });
        let frontends = frontends.collect();
        let service = ServiceTree { name: line.name.clone(), state: line.state, frontends };
        self.tree.services.push(service);
    }

    fn rule(&mut self, uid: &ServiceUid, rule: &Rule) -> RuleTree {
        let (ports, probe) = (ports_words(rule), probe_of(self.balancer, rule));
        let pool = rule.pool.as_ref().and_then(|id| self.pool(uid, id));
        RuleTree { name: rule.name.to_string(), ports, probe, pool }
    }

    fn pool(&mut self, uid: &ServiceUid, id: &ResourceId) -> Option<usize> {
        let name = id.name();
        let known = self.tree.pools.iter().position(|p| p.name.eq_ignore_ascii_case(name));
        if known.is_some() {
            return known;
        }
        let pool = self.balancer.pools.iter().find(|p| p.name.eq_ignore_ascii_case(name))?;
        let mut members = members_or_pods(self.world, pool, uid);
        let count = members.len();
        members.truncate(MEMBERS);
        self.tree.pools.push(PoolTree { name: pool.name.to_string(), members, count });
        Some(self.tree.pools.len() - 1)
    }
}

/// A rule in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLine {
    /// Its name.
    pub name: String,
    /// As `TCP 80 → 8080`.
    pub ports: String,
    /// As `probe HTTP 31000 /healthz`.
    pub probe: Option<String>,
    /// Its pool.
    pub pool: Option<String>,
}

/// All members of a pool, name and address; `None` where there is no such pool.
#[must_use]
pub fn members_of(world: &World, balancer: &str, pool: &str) -> Option<Vec<(String, String)>> {
    let balancer = named(world, balancer)?;
    let pool = balancer.pools.iter().find(|known| known.name.eq_ignore_ascii_case(pool))?;
    // A container load balancer is named after its Service.
    Some(members_or_pods(world, pool, &ServiceUid::new(balancer.id.name())))
}

/// All rules of a frontend; `None` where there is no such frontend.
#[must_use]
pub fn rules_of(world: &World, balancer: &str, frontend: &str) -> Option<Vec<RuleLine>> {
    let balancer = named(world, balancer)?;
    let is_it = |name: &str| name.eq_ignore_ascii_case(frontend);
    balancer.frontends.iter().find(|known| is_it(&known.name))?;
    let on_it = |rule: &&Rule| rule.frontend.as_ref().is_some_and(|id| is_it(id.name()));
    let rules = balancer.rules.iter().filter(on_it).map(|rule| RuleLine {
        name: rule.name.to_string(),
        ports: ports_words(rule),
        probe: probe_of(balancer, rule),
        pool: rule.pool.as_ref().map(|id| id.name().to_owned()),
    });
    Some(rules.collect())
}

fn named<'w>(world: &'w World, name: &str) -> Option<&'w LoadBalancer> {
    let mut all = world.azure.balancers.each();
    all.find(|balancer| balancer.id.name().eq_ignore_ascii_case(name)).map(|found| &**found)
}

fn members_or_pods(world: &World, pool: &Pool, uid: &ServiceUid) -> Vec<(String, String)> {
    let members = members(pool);
    if members.is_empty() { pods(world, uid) } else { members }
}

fn ports_words(rule: &Rule) -> String {
    let protocol = match rule.protocol {
        RuleProtocol::Tcp => "TCP",
        RuleProtocol::Udp => "UDP",
        RuleProtocol::All => "all",
    };
    match (rule.frontend_port, rule.backend_port) {
        (0, _) => format!("{protocol} all ports"),
        (from, to) => format!("{protocol} {from} → {to}"),
    }
}

fn probe_of(balancer: &LoadBalancer, rule: &Rule) -> Option<String> {
    let id = rule.probe.as_ref()?;
    let mut probes = balancer.probes.iter();
    probes.find(|probe| probe.name.eq_ignore_ascii_case(id.name())).map(probe_words)
}

fn probe_words(probe: &Probe) -> String {
    let protocol = match probe.protocol {
        ProbeProtocol::Tcp => "TCP",
        ProbeProtocol::Http => "HTTP",
        ProbeProtocol::Https => "HTTPS",
    };
    let path = probe.path.as_deref().map(|p| format!(" {p}")).unwrap_or_default();
    format!("probe {protocol} {}{path}", probe.port)
}

fn address(world: &World, frontend: &Frontend) -> Option<String> {
    match &frontend.address {
        FrontendAddress::Public(id) => {
            let known = world.azure.public_ips.values().filter_map(Fact::known);
            let ip = known.filter_map(|all| all.get(id)).next()?;
            ip.address.map(|a| a.to_string())
        }
        FrontendAddress::Private { address, .. } => address.map(|a| a.to_string()),
        FrontendAddress::Other => None,
    }
}

/// Nodes of a pool, by address or by NIC.
fn members(pool: &Pool) -> Vec<(String, String)> {
    let addresses = pool.addresses.iter().map(|a| {
        let drained = if a.admin == AdminState::Down { " (drained)" } else { "" };
        (a.name.to_string(), format!("{}{drained}", a.address))
    });
    // …/virtualMachines/0/networkInterfaces/nic/ipConfigurations/ipconfig
    let nics = pool.nics.iter().map(|nic| {
        let mut segments = nic.as_str().rsplit('/');
        let name = segments.nth(2).unwrap_or_default();
        (name.to_owned(), "network interface".to_owned())
    });
    addresses.chain(nics).collect()
}

/// Pods of a Service in the Service Gateway's table.
fn pods(world: &World, uid: &ServiceUid) -> Vec<(String, String)> {
    let Some(table) = world.azure.gateway_locations.known() else { return Vec::new() };
    let mut pods = Vec::new();
    for (location, addresses) in table.iter() {
        let node = world.kubernetes.nodes.values().find(|n| n.addresses.contains(location));
        let node = node.map_or_else(|| location.to_string(), |n| n.name.to_string());
        let ours = addresses
            .iter()
            .filter(|(_, services)| services.iter().any(|s| s.eq_ignore_ascii_case(uid.as_str())));
        pods.extend(ours.map(|(pod, _)| (format!("pod {pod}"), format!("on {node}"))));
    }
    pods
}
