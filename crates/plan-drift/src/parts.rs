//! A resource as parts that can be compared, and one with parts of another.

use model::azure::{
    Distribution, Frontend, LoadBalancer, MemberConfiguration, NatGateway, Pool, PoolAddress,
    PoolMember, PrivateLinkAddress, PrivateLinkService, Probe, PublicIp, Rest, Rule, SecurityGroup,
    SecurityRule, Subnet, Tags,
};
use model::drift::Part;
use model::id::fold_ids;
use model::plan::Resource;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Parts by kind and name. What Azure assigns, and what passes through us unread, is not in them.
/// Values that Azure takes for the same are equal: ids in any letter case, and a field of a rule
/// that is absent and one that has Azure's default.
pub type Parts = BTreeMap<Part, Value>;

/// Azure's idle timeout of a rule that names none, in minutes.
const IDLE_MIN: u16 = 4;

fn put(parts: &mut Parts, kind: &'static str, name: impl Into<Arc<str>>, value: Value) {
    parts.insert(Part { kind, name: name.into() }, value);
}

/// A value of the model as JSON; such values are plain, so this cannot fail.
fn plain(value: &impl Serialize) -> Value {
    fold_ids(serde_json::to_value(value).unwrap_or(Value::Null))
}

/// The JSON of a part of a resource, without its name and unknown fields.
fn fields(part: &impl Serialize) -> Value {
    let mut value = plain(part);
    if let Value::Object(fields) = &mut value {
        fields.retain(|key, _| !matches!(key.as_str(), "name" | "rest"));
    }
    value
}

fn put_tags(parts: &mut Parts, tags: Option<&Tags>) {
    for (key, value) in tags.into_iter().flatten() {
        put(parts, "tag", Arc::clone(key), Value::from(&**value));
    }
}

/// The parts of a resource.
pub fn parts(resource: &Resource) -> Parts {
    let mut parts = Parts::new();
    let p = &mut parts;
    match resource {
        Resource::LoadBalancer(r) => balancer(p, r),
        Resource::PublicIp(r) => public_ip(p, r),
        Resource::SecurityGroup(r) => {
            put_tags(p, r.tags.as_ref());
            for rule in &r.rules {
                let own = SecurityRule { rest: Rest::default(), ..rule.clone() };
                put(p, "rule", Arc::clone(&rule.name), fields(&own));
            }
        }
        Resource::Subnet(r) => {
            let Subnet { private_link, .. } = &**r;
            put(p, "field", "private link policy", plain(private_link));
        }
        Resource::PrivateLinkService(r) => link(p, r),
        Resource::NatGateway(r) => {
            put_tags(p, r.tags.as_ref());
            put(p, "field", "public IPs", plain(&r.public_ips));
            put(p, "field", "IPv6 public IPs", plain(&r.public_ips_v6));
            put(p, "field", "service gateway", plain(&r.gateway));
        }
        Resource::PoolMember(r) => {
            for configuration in &r.configurations {
                for pool in &configuration.pools {
                    let name = format!("{}/{}", configuration.name, pool.folded());
                    put(p, "pool membership", name, Value::Bool(true));
                }
            }
        }
    }
    parts
}

fn balancer(p: &mut Parts, r: &LoadBalancer) {
    put_tags(p, r.tags.as_ref());
    put(p, "field", "scope", plain(&r.scope));
    for Frontend { name, zones, address, rest: _ } in &r.frontends {
        let value = json!({"zones": zones, "address": address});
        put(p, "frontend", Arc::clone(name), fold_ids(value));
    }
    for Pool { name, network, addresses, nics: _, rest: _ } in &r.pools {
        put(p, "pool", Arc::clone(name), fold_ids(json!({"network": network})));
        for PoolAddress { address, name: node, admin, network } in addresses {
            let value = json!({"name": node, "admin": admin, "network": network});
            put(p, "pool address", format!("{name}/{address}"), fold_ids(value));
        }
    }
    for rule in &r.rules {
        put(p, "rule", Arc::clone(&rule.name), fields(&filled_in(rule)));
    }
    for probe in &r.probes {
        let own = Probe { rest: Rest::default(), ..probe.clone() };
        put(p, "probe", Arc::clone(&probe.name), fields(&own));
    }
}

/// A rule as Azure shows it, which fills in what was not asked for.
fn filled_in(rule: &Rule) -> Rule {
    let or_off = |flag: Option<bool>| flag.or(Some(false));
    Rule {
        floating_ip: or_off(rule.floating_ip),
        idle_timeout_min: rule.idle_timeout_min.or(Some(IDLE_MIN)),
        distribution: rule.distribution.or(Some(Distribution::Default)),
        disable_outbound_snat: or_off(rule.disable_outbound_snat),
        tcp_reset: or_off(rule.tcp_reset),
        rest: Rest::default(),
        ..rule.clone()
    }
}

fn public_ip(p: &mut Parts, r: &PublicIp) {
    put_tags(p, r.tags.as_ref());
    put(p, "field", "SKU", plain(&r.sku));
    put(p, "field", "allocation", plain(&r.allocation));
    put(p, "field", "DNS label", plain(&r.dns_label));
    put(p, "field", "IP tags", plain(&r.ip_tags));
}

fn link(p: &mut Parts, r: &PrivateLinkService) {
    put_tags(p, r.tags.as_ref());
    put(p, "field", "frontends", plain(&r.frontends));
    put(p, "field", "PROXY protocol", plain(&r.proxy_protocol));
    put(p, "field", "FQDNs", plain(&r.fqdns));
    put(p, "field", "visibility", plain(&r.visibility));
    put(p, "field", "auto-approval", plain(&r.auto_approval));
    for PrivateLinkAddress { name, subnet, address, rank, rest: _ } in &r.addresses {
        let value = json!({"subnet": subnet, "address": address, "rank": rank});
        put(p, "address", Arc::clone(name), fold_ids(value));
    }
}

/// Parts to be taken from another resource.
type Held<'a> = &'a BTreeSet<Part>;

fn is_held(held: Held<'_>, kind: &'static str, name: &str) -> bool {
    held.contains(&Part { kind, name: Arc::from(name) })
}

/// A resource with some of its parts as they are in another one: those that the other has not are
/// taken away.
pub(super) fn overlay(base: &Resource, other: &Resource, held: Held<'_>) -> Resource {
    match (base, other) {
        (Resource::LoadBalancer(b), Resource::LoadBalancer(o)) => {
            Resource::LoadBalancer(Arc::new(overlay_balancer(b, o, held)))
        }
        (Resource::PublicIp(b), Resource::PublicIp(o)) => {
            let mut r = PublicIp::clone(b);
            lay_tags(&mut r.tags, o.tags.as_ref(), held);
            lay_field(&mut r.sku, &o.sku, "SKU", held);
            lay_field(&mut r.allocation, &o.allocation, "allocation", held);
            lay_field(&mut r.dns_label, &o.dns_label, "DNS label", held);
            lay_field(&mut r.ip_tags, &o.ip_tags, "IP tags", held);
            Resource::PublicIp(Arc::new(r))
        }
        (Resource::SecurityGroup(b), Resource::SecurityGroup(o)) => {
            let mut r = SecurityGroup::clone(b);
            lay_tags(&mut r.tags, o.tags.as_ref(), held);
            lay(&mut r.rules, &o.rules, |rule| &*rule.name, |name| is_held(held, "rule", name));
            Resource::SecurityGroup(Arc::new(r))
        }
        (Resource::Subnet(b), Resource::Subnet(o)) => {
            let mut r = Subnet::clone(b);
            lay_field(&mut r.private_link, &o.private_link, "private link policy", held);
            Resource::Subnet(Arc::new(r))
        }
        (Resource::PrivateLinkService(b), Resource::PrivateLinkService(o)) => {
            Resource::PrivateLinkService(Arc::new(overlay_link(b, o, held)))
        }
        (Resource::NatGateway(b), Resource::NatGateway(o)) => {
            let mut r = NatGateway::clone(b);
            lay_tags(&mut r.tags, o.tags.as_ref(), held);
            lay_field(&mut r.public_ips, &o.public_ips, "public IPs", held);
            lay_field(&mut r.public_ips_v6, &o.public_ips_v6, "IPv6 public IPs", held);
            lay_field(&mut r.gateway, &o.gateway, "service gateway", held);
            Resource::NatGateway(Arc::new(r))
        }
        (Resource::PoolMember(b), Resource::PoolMember(o)) => {
            let mut r = PoolMember::clone(b);
            r.configurations.iter_mut().for_each(|c| lay_memberships(c, o, held));
            Resource::PoolMember(Arc::new(r))
        }
        (base, _) => base.clone(),
    }
}

fn overlay_balancer(b: &LoadBalancer, o: &LoadBalancer, held: Held<'_>) -> LoadBalancer {
    let mut r = b.clone();
    lay_tags(&mut r.tags, o.tags.as_ref(), held);
    lay_field(&mut r.scope, &o.scope, "scope", held);
    lay(&mut r.frontends, &o.frontends, |f| &*f.name, |name| is_held(held, "frontend", name));
    lay(&mut r.rules, &o.rules, |f| &*f.name, |name| is_held(held, "rule", name));
    lay(&mut r.probes, &o.probes, |f| &*f.name, |name| is_held(held, "probe", name));
    lay(&mut r.pools, &o.pools, |f| &*f.name, |name| is_held(held, "pool", name));
    for pool in &mut r.pools {
        let before = b.pools.iter().find(|p| p.name == pool.name);
        let mut addresses = before.map(|p| p.addresses.clone()).unwrap_or_default();
        let theirs = o.pools.iter().find(|p| p.name == pool.name);
        let theirs = theirs.map(|p| p.addresses.as_slice()).unwrap_or_default();
        let name = |address: &PoolAddress| format!("{}/{}", pool.name, address.address);
        addresses.retain(|a| !is_held(held, "pool address", &name(a)));
        let taken = theirs.iter().filter(|a| is_held(held, "pool address", &name(a)));
        addresses.extend(taken.cloned());
        addresses.sort();
        pool.addresses = addresses;
    }
    r
}

fn overlay_link(
    b: &PrivateLinkService,
    o: &PrivateLinkService,
    held: Held<'_>,
) -> PrivateLinkService {
    let mut r = b.clone();
    lay_tags(&mut r.tags, o.tags.as_ref(), held);
    lay_field(&mut r.frontends, &o.frontends, "frontends", held);
    lay_field(&mut r.proxy_protocol, &o.proxy_protocol, "PROXY protocol", held);
    lay_field(&mut r.fqdns, &o.fqdns, "FQDNs", held);
    lay_field(&mut r.visibility, &o.visibility, "visibility", held);
    lay_field(&mut r.auto_approval, &o.auto_approval, "auto-approval", held);
    lay(&mut r.addresses, &o.addresses, |a| &*a.name, |name| is_held(held, "address", name));
    r
}

fn lay_memberships(configuration: &mut MemberConfiguration, other: &PoolMember, held: Held<'_>) {
    let name = configuration.name.clone();
    let is_held = |pool: &model::ResourceId| {
        is_held(held, "pool membership", &format!("{name}/{}", pool.folded()))
    };
    configuration.pools.retain(|pool| !is_held(pool));
    let theirs = other.configurations.iter().filter(|c| c.name == name);
    let taken = theirs.flat_map(|c| &c.pools).filter(|pool| is_held(pool));
    configuration.pools.extend(taken.cloned());
}

fn lay_tags(tags: &mut Option<Tags>, other: Option<&Tags>, held: Held<'_>) {
    let keys = held.iter().filter(|part| part.kind == "tag").map(|part| &part.name);
    for key in keys {
        match other.and_then(|tags| tags.get(key)) {
            Some(value) => {
                tags.get_or_insert_default().insert(Arc::clone(key), Arc::clone(value));
            }
            None => {
                tags.as_mut().map(|tags| tags.remove(key));
            }
        }
    }
}

fn lay_field<T: Clone>(field: &mut T, other: &T, name: &str, held: Held<'_>) {
    if is_held(held, "field", name) {
        field.clone_from(other);
    }
}

/// Takes the held elements of a list from another; those that the list lacks stand where they
/// stand there.
fn lay<T: Clone>(
    list: &mut Vec<T>,
    other: &[T],
    name: impl Fn(&T) -> &str,
    is_held: impl Fn(&str) -> bool,
) {
    let theirs = |wanted: &str| other.iter().find(|o| name(o) == wanted).cloned();
    let mut result: Vec<T> = Vec::with_capacity(list.len());
    for item in list.iter() {
        if !is_held(name(item)) {
            result.push(item.clone());
        } else if let Some(item) = theirs(name(item)) {
            result.push(item);
        }
    }
    for (at, item) in other.iter().enumerate() {
        let listed = |all: &[T]| all.iter().any(|known| name(known) == name(item));
        if is_held(name(item)) && !listed(list) {
            result.insert(at.min(result.len()), item.clone());
        }
    }
    *list = result;
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ResourceId;
    use model::azure::{Access, ProbeProtocol, RuleProtocol};

    #[test]
    fn what_azure_takes_for_the_same_is_equal() {
        let of = |balancer: LoadBalancer| parts(&Resource::LoadBalancer(Arc::new(balancer)));
        let was = of(fixture::balancer());
        let mut same = fixture::balancer();
        for rule in &mut same.rules {
            for id in [&mut rule.frontend, &mut rule.pool, &mut rule.probe] {
                *id = id.take().map(|id| ResourceId::new(id.as_str().to_uppercase()));
            }
            (rule.disable_outbound_snat, rule.idle_timeout_min) = (None, None);
            rule.distribution = None;
        }
        assert_eq!(of(same), was);
        let mut other = fixture::balancer();
        other.rules[0].tcp_reset = None;
        assert_ne!(of(other), was);
        let mut tagged = fixture::balancer();
        tagged.tags = Some(Tags::from([("id".into(), "/subscriptions/S".into())]));
        let mut small = tagged.clone();
        small.tags = Some(Tags::from([("id".into(), "/subscriptions/s".into())]));
        assert_ne!(of(tagged), of(small), "a tag's value is no id to Azure");
    }

    /// The ledger has hashes of these texts. With another order of fields, an upgrade would take
    /// drift that is left alone (`driftPolicy: report`) for a new edit, and write it.
    #[test]
    fn parts_are_written_down_as_by_versions_before() {
        let rule = Rule {
            name: "a-TCP-80".into(),
            protocol: RuleProtocol::Tcp,
            frontend_port: 80,
            backend_port: 30080,
            frontend: None,
            pool: None,
            probe: None,
            floating_ip: Some(true),
            idle_timeout_min: Some(4),
            distribution: Some(Distribution::Default),
            disable_outbound_snat: None,
            tcp_reset: Some(true),
            rest: Rest::default(),
        };
        let wanted = r#"{"protocol":"Tcp","frontend_port":80,"backend_port":30080,"#;
        let rest = r#""frontend":null,"pool":null,"probe":null,"floating_ip":true,"#;
        let more = r#""idle_timeout_min":4,"distribution":"Default","#;
        let last = r#""disable_outbound_snat":null,"tcp_reset":true}"#;
        assert_eq!(fields(&rule).to_string(), [wanted, rest, more, last].concat());
        let probe = Probe {
            name: "a-TCP-80".into(),
            protocol: ProbeProtocol::Tcp,
            port: 30080,
            path: None,
            interval_s: 5,
            threshold: 2,
            rest: Rest::default(),
        };
        let wanted = r#"{"protocol":"Tcp","port":30080,"path":null,"interval_s":5,"threshold":2}"#;
        assert_eq!(fields(&probe).to_string(), wanted);
        let one = |text: &str| BTreeSet::from([Arc::from(text)]);
        let rule = SecurityRule {
            name: "k8s-azure-lb_allow".into(),
            access: Access::Allow,
            direction: "Inbound".into(),
            priority: 500,
            protocol: "Tcp".into(),
            sources: one("Internet"),
            source_ports: one("*"),
            destinations: one("20.0.0.1"),
            ports: one("80"),
            rest: Rest::default(),
        };
        let wanted = r#"{"access":"Allow","direction":"Inbound","priority":500,"protocol":"Tcp","#;
        let rest = r#""sources":["Internet"],"source_ports":["*"],"destinations":["20.0.0.1"],"#;
        let last = r#""ports":["80"]}"#;
        assert_eq!(fields(&rule).to_string(), [wanted, rest, last].concat());
    }
}
