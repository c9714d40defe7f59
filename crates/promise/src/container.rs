//! Container load balancers: one for each Service, and traffic straight to its Pods.
//!
//! What is promised (docs/container-load-balancer.md):
//! - A Service has a public IP `<uid>-pip`, a load balancer `<uid>` of SKU Service with a
//!   frontend, an empty pool and a rule for each port whose target is known, and a service
//!   `<uid>` in the Service Gateway that names the pool.
//! - Load balancers, their public IPs and NAT gateways have the tags of the cloud config, and are
//!   in its region.
//! - A Service that container load balancers cannot serve is refused, and keeps what it has.
//! - Its finalizers are on it as long as anything of it stands, and its status tells the address.
//! - A Service that asks for none has none of that, and nothing of a Service that is gone is left.

mod egress;
mod table;
mod targets;
mod tenants;

use crate::Broken;
use crate::asks::Asks;
use crate::case::{Case, Fate, Service};
use crate::estate::{has_finalizer, items, part, parts, same, text, told};
use crate::names::{FINALIZER, GATEWAY_FINALIZER, POD_FINALIZER};
use crate::site::Layout;
use crate::{names, region, tags};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use targets::Target;

const PROMISE: &str = "container";
const EGRESS_LABEL: &str = "kubernetes.azure.com/service-egress-gateway";
/// Label and readiness gate of Pods that are ready once the Service Gateway lists them.
const GATE: &str = "ballast.dev/load-balancer-ready";

/// Services of the gateway whose addresses are judged.
#[derive(Debug, Default)]
struct Registered {
    /// UIDs of Services that have, or must have, a load balancer.
    inbound: BTreeSet<String>,
    /// Names of egress gateways that Pods ask for.
    outbound: BTreeSet<String>,
    /// The namespaces that have each name of an egress gateway.
    tenants: BTreeMap<String, BTreeSet<String>>,
    /// Names of egress gateways that have to stay, because a Pod with our finalizer has no address
    /// for a while.
    held: BTreeSet<String>,
    /// Names of gateway services that are not this cluster's to register.
    others: BTreeSet<String>,
}

impl Registered {
    /// The egress gateway that a Pod leaves by, if its namespace has the name.
    fn egress_of(&self, pod: &Value) -> Option<String> {
        let namespace = text(&pod["metadata"]["namespace"]);
        egress_of(pod).filter(|name| self.tenants.get(name).is_some_and(|t| t.contains(namespace)))
    }
}

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    let mut registered = Registered::default();
    let rows = rows(case);
    for service in &case.services {
        let uid = uid_of(service.object);
        let mut wrong = Vec::new();
        match &service.fate {
            Fate::Unwanted => must_have_nothing(case, service, &uid, &mut wrong),
            Fate::Refused(_) | Fate::Denied(..) => {
                registered.inbound.extend(rows.contains_key(&uid).then_some(uid));
            }
            Fate::Served(asks) => {
                judge_service(case, service, asks, &uid, &mut wrong);
                registered.inbound.insert(uid);
            }
        }
        broken.extend(wrong.into_iter().map(|text| service.broken(PROMISE, text)));
    }
    let mut wrong = Vec::new();
    registered.tenants = tenants::tenants(case);
    registered.others =
        rows.iter().filter(|(name, row)| is_others(name, row)).map(|(n, _)| n.clone()).collect();
    registered.outbound = egress::wanted(case, &registered);
    registered.held = held(case);
    egress::judge(case, &registered, &mut wrong);
    table::judge(case, &registered, &mut wrong);
    nothing_of_the_gone(case, &registered, &mut wrong);
    broken.extend(wrong.into_iter().map(|text| Broken { service: None, promise: PROMISE, text }));
}

/// Services whose Pods do not say where a single port of theirs leads.
pub(crate) fn unanswered(case: &Case<'_>) -> BTreeSet<String> {
    if case.site.layout != Layout::Container {
        return BTreeSet::new();
    }
    let all = case.services.iter().filter(|service| match &service.fate {
        Fate::Served(asks) => is_unanswered(case, &uid_of(service.object), asks),
        Fate::Unwanted | Fate::Refused(_) | Fate::Denied(..) => false,
    });
    all.map(|service| service.key.clone()).collect()
}

/// Whether a Service waits for its Pods to say where a first port leads.
pub(crate) fn waits(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> bool {
    let uid = uid_of(service.object);
    let leads = |balancer| parts(balancer, "loadBalancingRules").count() > 0;
    case.site.layout == Layout::Container
        && is_unanswered(case, &uid, asks)
        && !case.estate.get(&balancer_id(case, &uid)).is_some_and(leads)
}

fn is_unanswered(case: &Case<'_>, uid: &str, asks: &Asks) -> bool {
    let targets = targets::of(case, uid, asks, &Value::Null);
    targets.iter().all(|target| !matches!(target, Target::Number(_)))
}

/// The UID of an object, in the letters that Azure's names have.
fn uid_of(object: &Value) -> String {
    text(&object["metadata"]["uid"]).to_lowercase()
}

/// Whether a name has the form of a UID: 8-4-4-4-12 hexadecimal digits.
pub(crate) fn is_uid(name: &str) -> bool {
    let parts: Vec<usize> = name.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && name.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// The services of the gateway by their names in lower case.
fn rows<'a>(case: &'a Case<'_>) -> BTreeMap<String, &'a Value> {
    let tables = case.scene.gateway.as_ref();
    let rows = tables.and_then(|tables| tables["services"].as_object());
    rows.into_iter().flatten().map(|(name, row)| (name.to_lowercase(), row)).collect()
}

/// A gateway service is another's where it is the cluster's default way out, or has a name that no
/// load balancer and no egress gateway of ours can have.
fn is_others(name: &str, row: &Value) -> bool {
    let inside = &row["properties"];
    let of_our_form = match text(&inside["serviceType"]).to_lowercase().as_str() {
        "inbound" => is_uid(name),
        "outbound" => egress::is_valid(name),
        _ => false,
    };
    inside["isDefault"] == true || !of_our_form
}

fn id_of(case: &Case<'_>, kind: &str, name: &str) -> String {
    let (subscription, group) = (&case.site.subscription, &case.site.group);
    let root = format!("/subscriptions/{subscription}/resourceGroups/{group}");
    format!("{root}/providers/Microsoft.Network/{kind}/{name}").to_lowercase()
}

fn balancer_id(case: &Case<'_>, uid: &str) -> String {
    names::balancer_id(&case.site, uid)
}

/// Everything that a Service has that is served.
fn judge_service(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    uid: &str,
    wrong: &mut Vec<String>,
) {
    let object = service.object;
    let ip_id = id_of(case, "publicIPAddresses", &format!("{uid}-pip"));
    let version = asks.families.first().map_or("IPv4", |family| family.name());
    let address = judge_ip(case, &ip_id, version, wrong);
    if let Some(ip) = case.estate.get(&ip_id) {
        tags::configured(case, ip, &[], wrong);
    }
    match case.estate.get(&balancer_id(case, uid)) {
        Some(balancer) => {
            judge_balancer((case, asks), balancer, uid, &ip_id, wrong);
            tags::configured(case, balancer, &[], wrong);
        }
        None => wrong.push(format!("load balancer {uid} does not stand")),
    }
    match rows(case).get(uid) {
        Some(row) => {
            let inside = &row["properties"];
            let pool = format!("{}/backendaddresspools/{uid}", balancer_id(case, uid));
            let pools: Vec<String> = items(&inside["loadBalancerBackendPools"])
                .map(|pool| text(&pool["id"]).to_lowercase())
                .collect();
            if pools != [pool] {
                wrong.push(format!("service {uid} of the Service Gateway leads to {pools:?}"));
            }
            if !same(text(&inside["serviceType"]), "Inbound") {
                wrong.push(format!("service {uid} of the Service Gateway is not Inbound"));
            }
        }
        None => wrong.push(format!("service {uid} of the Service Gateway is not registered")),
    }
    for finalizer in [GATEWAY_FINALIZER, FINALIZER] {
        if !has_finalizer(object, finalizer) {
            wrong.push(format!("finalizer {finalizer} is not on it"));
        }
    }
    let told: Vec<&str> = told(object).collect();
    // Before a port leads anywhere there is no address to tell.
    let untold = told.is_empty() && waits(case, service, asks);
    if address.is_some_and(|address| told != [address]) && !untold {
        wrong.push(format!("status tells {told:?}; its address is {}", address.unwrap_or("")));
    }
}

/// A public IP of a load balancer or an egress gateway; its address.
fn judge_ip<'a>(
    case: &Case<'a>,
    id: &str,
    version: &str,
    wrong: &mut Vec<String>,
) -> Option<&'a str> {
    let Some(ip) = case.estate.get(id) else {
        wrong.push(format!("public IP {id} does not stand"));
        return None;
    };
    wrong.extend(region::wrong(case, ip, None));
    let inside = &ip["properties"];
    for (what, has, must) in [
        ("SKU", &ip["sku"]["name"], "StandardV2"),
        ("allocation", &inside["publicIPAllocationMethod"], "Static"),
        ("version", &inside["publicIPAddressVersion"], version),
    ] {
        if !same(text(has), must) {
            wrong.push(format!("public IP {id} has the {what} {has}; it must be {must}"));
        }
    }
    if inside["ipAddress"].as_str().is_none() {
        wrong.push(format!("public IP {id} has no address"));
    }
    inside["ipAddress"].as_str()
}

fn judge_balancer(
    (case, asks): (&Case<'_>, &Asks),
    balancer: &Value,
    uid: &str,
    ip: &str,
    wrong: &mut Vec<String>,
) {
    wrong.extend(region::wrong(case, balancer, None));
    let inside = &balancer["properties"];
    if !same(text(&balancer["sku"]["name"]), "Service") {
        wrong.push(format!("load balancer {uid} has the SKU {}", balancer["sku"]["name"]));
    }
    if !same(text(&inside["scope"]), "Public") {
        wrong.push(format!("load balancer {uid} has the scope {}", inside["scope"]));
    }
    let frontends: Vec<(&str, String)> = parts(balancer, "frontendIPConfigurations")
        .map(|f| (text(&f["name"]), text(&f["properties"]["publicIPAddress"]["id"]).to_lowercase()))
        .collect();
    if frontends != [("frontend", ip.to_owned())] {
        wrong.push(format!("load balancer {uid} has the frontends {frontends:?}"));
    }
    let pools: Vec<&str> =
        parts(balancer, "backendAddressPools").map(|pool| text(&pool["name"])).collect();
    if !(pools.len() == 1 && same(pools[0], uid)) {
        wrong.push(format!("load balancer {uid} has the pools {pools:?}"));
    }
    let members = parts(balancer, "backendAddressPools")
        .flat_map(|pool| items(&pool["properties"]["loadBalancerBackendAddresses"]));
    if members.count() > 0 {
        wrong.push(format!("the pool of load balancer {uid} has members of its own"));
    }
    for collection in ["probes", "outboundRules", "inboundNatRules", "inboundNatPools"] {
        if parts(balancer, collection).count() > 0 {
            wrong.push(format!("load balancer {uid} has {collection}"));
        }
    }
    judge_rules((case, asks), balancer, uid, wrong);
}

fn judge_rules(
    (case, asks): (&Case<'_>, &Asks),
    balancer: &Value,
    uid: &str,
    wrong: &mut Vec<String>,
) {
    let targets = targets::of(case, uid, asks, balancer);
    for (port, target) in asks.ports.iter().zip(targets) {
        let (protocol, number) = (port.protocol.in_rule(), port.number);
        let name = format!("rule-{}-{number}", protocol.to_lowercase());
        let rule = part(balancer, "loadBalancingRules", &name);
        if target == Target::Shared && rule.is_some() {
            wrong.push(format!("{name} of load balancer {uid} shares another port's target"));
        }
        let Some(rule) = rule else {
            if matches!(target, Target::Number(_)) {
                wrong.push(format!("load balancer {uid} lacks {name}"));
            }
            continue;
        };
        let inside = &rule["properties"];
        let tcp = protocol == "Tcp";
        let ends =
            |field: &str, end: String| text(&inside[field]["id"]).to_lowercase().ends_with(&end);
        let holds = [
            ("protocol", same(text(&inside["protocol"]), protocol)),
            ("frontendPort", inside["frontendPort"].as_u64() == Some(number)),
            (
                "backendPort",
                !matches!(target, Target::Number(n) if inside["backendPort"].as_u64() != Some(n)),
            ),
            ("idleTimeoutInMinutes", inside["idleTimeoutInMinutes"] == asks.idle_minutes),
            ("enableFloatingIP", inside["enableFloatingIP"] != true),
            ("enableTcpReset", (inside["enableTcpReset"] == true) == tcp),
            ("loadDistribution", matches!(text(&inside["loadDistribution"]), "" | "Default")),
            ("probe", inside["probe"]["id"].is_null()),
            (
                "frontend",
                ends(
                    "frontendIPConfiguration",
                    format!("/{uid}/frontendipconfigurations/frontend"),
                ),
            ),
            ("pool", ends("backendAddressPool", format!("/{uid}/backendaddresspools/{uid}"))),
        ];
        for (field, _) in holds.iter().filter(|(_, holds)| !holds) {
            wrong.push(format!("{field} of {name} is not what its port asks for: {inside}"));
        }
    }
    let standing = parts(balancer, "loadBalancingRules").count();
    if standing > asks.ports.len() {
        let text =
            format!("load balancer {uid} has {standing} rules for {} ports", asks.ports.len());
        wrong.push(text);
    }
}

/// A Service that asks for no load balancer of ours has nothing of one.
fn must_have_nothing(case: &Case<'_>, service: &Service<'_>, uid: &str, wrong: &mut Vec<String>) {
    if has_finalizer(service.object, GATEWAY_FINALIZER) {
        wrong.push(format!("finalizer {GATEWAY_FINALIZER} is still on it"));
    }
    for id in [balancer_id(case, uid), id_of(case, "publicIPAddresses", &format!("{uid}-pip"))] {
        if case.estate.get(&id).is_some() {
            wrong.push(format!("{id} stands for it"));
        }
    }
    if rows(case).contains_key(uid) {
        wrong.push(format!("service {uid} of the Service Gateway is registered for it"));
    }
}

/// Nothing stands under the UID of a Service that is gone.
fn nothing_of_the_gone(case: &Case<'_>, registered: &Registered, wrong: &mut Vec<String>) {
    let uids: BTreeSet<String> = case.services.iter().map(|s| uid_of(s.object)).collect();
    for (name, row) in rows(case) {
        let outbound = same(text(&row["properties"]["serviceType"]), "Outbound");
        let held = registered.outbound.contains(&name) || registered.held.contains(&name);
        let asked = uids.contains(&name) || (outbound && held);
        if !asked && !registered.others.contains(&name) {
            wrong.push(format!("service {name} of the Service Gateway is nobody's"));
        }
    }
    for (id, balancer) in case.estate.balancers() {
        let name = id.rsplit('/').next().unwrap_or("");
        if same(text(&balancer["sku"]["name"]), "Service") && is_uid(name) && !uids.contains(name) {
            wrong.push(format!("load balancer {name} is nobody's"));
        }
    }
    for (id, ip) in case.estate.public_ips() {
        let name = id.rsplit('/').next().unwrap_or("");
        let uid = name.strip_suffix("-pip").unwrap_or("");
        // It carries no tag: one that stood before tells nothing of whose it was.
        let stood = case.before(id).is_some();
        let ours = same(text(&ip["sku"]["name"]), "StandardV2") && is_uid(uid) && !stood;
        if ours && !uids.contains(uid) {
            wrong.push(format!("public IP {name} is nobody's"));
        }
    }
}

/// Egress gateways of Pods with our finalizer, with or without an address: while a Pod changes its
/// addresses it has none for a moment, as one that has just been created, and its way out stays.
fn held(case: &Case<'_>) -> BTreeSet<String> {
    let pods = case.scene.pods.iter().filter(|pod| has_finalizer(pod, POD_FINALIZER));
    pods.filter_map(|pod| egress_of(pod)).collect()
}

/// The egress gateway that a Pod leaves by.
fn egress_of(pod: &Value) -> Option<String> {
    let name = pod["metadata"]["labels"][EGRESS_LABEL].as_str()?.to_lowercase();
    let alive = pod["metadata"]["deletionTimestamp"].is_null()
        && matches!(text(&pod["status"]["phase"]), "Pending" | "Running");
    (alive && egress::is_valid(&name)).then_some(name)
}

/// Whether a Pod is watched: it has an egress label, or our readiness gate.
fn is_watched(pod: &Value) -> bool {
    let labels = &pod["metadata"]["labels"];
    !labels[EGRESS_LABEL].is_null() || (!labels[GATE].is_null() && has_gate(pod))
}

fn has_gate(pod: &Value) -> bool {
    items(&pod["spec"]["readinessGates"]).any(|gate| gate["conditionType"] == GATE)
}

/// Whether a Pod waits for nothing but our readiness gate: it is listed before it is ready.
fn waits_for_our_gate(case: &Case<'_>, namespace: &str, name: &str) -> bool {
    let mut pods = case.scene.pods.iter();
    let own = pods.find(|pod| {
        text(&pod["metadata"]["namespace"]) == namespace && text(&pod["metadata"]["name"]) == name
    });
    let Some(pod) = own.filter(|pod| is_watched(pod) && has_gate(pod)) else { return false };
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return false;
    }
    let is_true = |kind: &str| {
        let conditions = items(&pod["status"]["conditions"]);
        conditions.filter(|c| c["type"] == *kind).any(|c| c["status"] == "True")
    };
    let gates = items(&pod["spec"]["readinessGates"]).map(|gate| text(&gate["conditionType"]));
    is_true("ContainersReady") && gates.filter(|gate| *gate != GATE).all(is_true)
}
