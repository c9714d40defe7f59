//! A cluster whose load balancers are containers', and what tests ask about it.

pub use super::{DAY_MS, remove};
use super::{call, create, estate, network, node, object, patch, patch_part, policy};
use azure_emulator::{Azure, Fault, FaultKind, Options as AzureOptions, Switch};
use control::Options;
use kube_emulator::{ObjectRef, Ownership, Part, Store, StoreOptions};
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Location, address and the names that list it there.
pub type Table = BTreeMap<(String, String), BTreeSet<String>>;

pub fn gateway_id() -> String {
    network("serviceGateways/servicegateway")
}

pub fn keys() -> Value {
    json!({"loadBalancerSku": "service", "loadBalancerBackendPoolConfigurationType": "podIP",
        "serviceGatewayEnabled": true, "disableOutboundSNAT": false})
}

/// The estate with a gateway and the cluster's own way out, as the resource provider leaves them.
pub fn gateway_estate() -> Vec<Value> {
    let nat = network("natGateways/default-natgw");
    let pip = network("publicIPAddresses/default-natgw-pip");
    let mut all = estate();
    all.extend([
        json!({"id": pip, "sku": {"name": "StandardV2", "tier": "Regional"}, "properties": {
            "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4",
            "ipAddress": "20.60.0.1", "idleTimeoutInMinutes": 4}}),
        json!({"id": nat, "sku": {"name": "StandardV2"}, "properties": {
            "publicIpAddresses": [{"id": pip}], "serviceGateway": {"id": gateway_id()}}}),
        json!({"id": gateway_id(), "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"virtualNetwork": {"id": network("virtualNetworks/vnet")},
                "services": [{"name": "default-natgw", "properties": {
                    "serviceType": "Outbound", "isDefault": true,
                    "loadBalancerBackendPools": [], "publicNatGatewayId": nat}}]}}),
    ]);
    all
}

/// So many nodes, each with an address of both families.
pub fn container_laboratory(nodes: u32) -> Laboratory {
    container_laboratory_of((0..nodes).map(node).collect())
}

/// The same, at rest.
pub fn resting(nodes: u32) -> Laboratory {
    let mut lab = container_laboratory(nodes);
    rest(&mut lab);
    lab
}

pub fn container_laboratory_of(nodes: Vec<Value>) -> Laboratory {
    let options = AzureOptions { defaults: Switch::Off, ..AzureOptions::default() };
    let mut azure = Azure::new(options);
    azure.seed(gateway_estate());
    let options = StoreOptions {
        ownership: Ownership::AppliedOnly,
        history_limit: 100_000,
        ..StoreOptions::default()
    };
    let mut store = Store::new(options);
    for node in nodes {
        store.create(node, 0).expect("a node is created");
    }
    Laboratory::new(store, azure, policy(&keys()), Options::default())
}

/// A Service without a selector: its slices are the test's.
pub fn web(index: u32) -> Value {
    let mut service = super::service(index);
    if let Some(spec) = service["spec"].as_object_mut() {
        spec.remove("selector");
    }
    service
}

pub fn web_name(index: u32) -> String {
    format!("web-{index:04}")
}

pub fn service_of(lab: &Laboratory, name: &str) -> Option<Value> {
    object(lab, "services", "default", name)
}

pub fn uid_of(lab: &Laboratory, name: &str) -> String {
    let service = service_of(lab, name).expect("the Service is there");
    service["metadata"]["uid"].as_str().expect("it has a UID").to_owned()
}

pub fn node_name(index: u32) -> String {
    format!("vmss{index:06}")
}

/// The address of a node in the table.
pub fn location(index: u32) -> String {
    format!("10.224.{}.{}", index / 250, 4 + index % 250)
}

pub fn pod_ip(number: u32) -> String {
    format!("10.{}.{}.{}", 64 + number / 62_500, number / 250 % 250, 1 + number % 250)
}

/// One endpoint of a slice.
pub fn endpoint(address: &str, node: u32, ready: bool) -> Value {
    json!({"addresses": [address], "nodeName": node_name(node), "conditions": {"ready": ready}})
}

/// Pods by number, each on a node, all ready.
pub fn ready(pods: &[(u32, u32)]) -> Vec<Value> {
    pods.iter().map(|(pod, node)| endpoint(&pod_ip(*pod), *node, true)).collect()
}

/// Makes or replaces one slice of a Service.
pub fn set_slice(lab: &mut Laboratory, service: &str, part: u32, endpoints: Vec<Value>) {
    let uid = uid_of(lab, service);
    set_slice_of(lab, service, &uid, part, endpoints);
}

pub fn set_slice_of(
    lab: &mut Laboratory,
    service: &str,
    uid: &str,
    part: u32,
    endpoints: Vec<Value>,
) {
    let name = format!("{service}-{part}");
    if object(lab, "endpointslices", "default", &name).is_some() {
        patch(lab, "endpointslices", "default", &name, json!({"endpoints": endpoints}));
        return;
    }
    create(
        lab,
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "default",
                "labels": {"kubernetes.io/service-name": service},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": service,
                    "uid": uid, "controller": true}]},
            "addressType": "IPv4", "endpoints": endpoints, "ports": []}),
    );
}

pub fn delete_slice(lab: &mut Laboratory, service: &str, part: u32) {
    remove(lab, "endpointslices", "default", &format!("{service}-{part}"));
}

pub fn merge(lab: &mut Laboratory, plural: &str, name: &str, part: Part, body: Value) {
    let namespace = if plural == "nodes" { "" } else { "default" };
    patch_part(lab, ObjectRef::new(plural, namespace, name), part, body);
}

/// A Pod that leaves through a gateway of its own.
pub fn egress_pod(name: &str, label: &str, addresses: &[&str], node: u32) -> Value {
    let hosts = [location(node), format!("fd00::{:x}", 4 + node)];
    let ips: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default",
            "labels": {"kubernetes.azure.com/service-egress-gateway": label}},
        "spec": {"nodeName": node_name(node), "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "hostIP": hosts[0],
            "hostIPs": [{"ip": hosts[0]}, {"ip": hosts[1]}],
            "podIP": addresses.first(), "podIPs": ips}})
}

pub fn pod_of(lab: &Laboratory, name: &str) -> Option<Value> {
    object(lab, "pods", "default", name)
}

pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let all = object["metadata"]["finalizers"].as_array();
    all.is_some_and(|all| all.iter().any(|f| f == finalizer))
}

pub const POD_FINALIZER: &str = "servicegateway.azure.com/pod-cleanup";
pub const GATEWAY_FINALIZER: &str = "servicegateway.azure.com/service-cleanup";

/// Another client writes one of the gateway's tables.
pub fn write_table(lab: &mut Laboratory, action: &str, body: Value) {
    call(lab, "POST", &format!("{}/{action}", gateway_id()), Some(body));
}

/// The request that gives one entry of the table of addresses these names.
pub fn entry(location: &str, address: &str, services: &[&str]) -> Value {
    json!({"action": "PartialUpdate", "addressLocations": [{"addressLocation": location,
        "addressUpdateAction": "PartialUpdate",
        "addresses": [{"address": address, "services": services}]}]})
}

/// The table of addresses as the emulator has it.
pub fn table_of(azure: &Azure) -> Table {
    let tables = azure.gateway(&gateway_id()).unwrap_or_default();
    let mut found = Table::new();
    for (location, at) in tables["locations"].as_object().into_iter().flatten() {
        for (address, names) in at.as_object().into_iter().flatten() {
            let names = names.as_array().into_iter().flatten();
            let names = names.filter_map(|n| n.as_str().map(str::to_owned)).collect();
            found.insert((location.clone(), address.clone()), names);
        }
    }
    found
}

pub fn table(lab: &Laboratory) -> Table {
    table_of(&lab.azure)
}

/// Names in the table of gateway services.
pub fn registered(lab: &Laboratory) -> BTreeSet<String> {
    let tables = lab.azure.gateway(&gateway_id()).unwrap_or_default();
    tables["services"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// The public address of a Service.
pub fn address_of(lab: &Laboratory, name: &str) -> Option<String> {
    let service = service_of(lab, name)?;
    service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().map(str::to_owned)
}

/// Who gets a Service's traffic.
pub fn backends(lab: &Laboratory, name: &str) -> Vec<String> {
    let address = address_of(lab, name).expect("the Service has an address");
    let traffic = lab.azure.traffic(&address, "Tcp", 80);
    traffic.map(|t| t.backends).unwrap_or_default()
}

/// Calls of one of the gateway's actions.
pub fn posts(lab: &Laboratory, action: &str) -> usize {
    lab.azure.calls().iter().filter(|c| c.path.ends_with(action)).count()
}

pub fn service_posts(lab: &Laboratory) -> usize {
    posts(lab, "/updateServices")
}

pub fn location_posts(lab: &Laboratory) -> usize {
    posts(lab, "/updateAddressLocations")
}

/// Writes of a method to a kind of resource.
pub fn writes_of(lab: &Laboratory, method: &str, kind: &str) -> usize {
    let calls = lab.azure.calls().iter();
    calls.filter(|c| c.method == method && c.path.contains(&format!("/{kind}/"))).count()
}

/// Method and last part of each write, in order.
pub fn write_log(lab: &Laboratory) -> Vec<String> {
    let writes = lab.azure.calls().iter().filter(|c| c.is_write());
    let last = |path: &str| path.rsplit('/').next().unwrap_or("").to_owned();
    writes.map(|c| format!("{} {}", c.method, last(&c.path))).collect()
}

/// What is in Azure beside the estate: resources, registrations, addresses.
pub fn container_leftovers(lab: &Laboratory) -> Vec<String> {
    let estate: BTreeSet<String> =
        gateway_estate().iter().filter_map(|r| r["id"].as_str().map(str::to_lowercase)).collect();
    let all = lab.azure.resources().into_iter();
    let ids = all.filter_map(|r| r["id"].as_str().map(str::to_lowercase));
    let mut left: Vec<String> = ids.filter(|id| !estate.contains(id)).collect();
    left.extend(registered(lab).into_iter().filter(|name| name != "default-natgw"));
    left.extend(table(lab).into_keys().map(|(location, address)| format!("{location} {address}")));
    left
}

pub fn refusal(status: u16, code: &str, retry_after_s: Option<u64>) -> FaultKind {
    let (code, message) = (code.to_owned(), "on order".to_owned());
    FaultKind::Status { status, code, message, retry_after_s, headers: Vec::new() }
}

/// Azure refuses one such call, and does not say for how long.
pub fn refusing(status: u16, code: &str, method: &str, path: &str) -> Fault {
    fault(refusal(status, code, None), method, path)
}

pub fn fault(kind: FaultKind, method: &str, path: &str) -> Fault {
    Fault::new(kind).on_method(method).on_path(path).expect("the pattern parses")
}

/// Events about an object, by reason.
pub fn reasons(lab: &Laboratory, name: &str) -> Vec<String> {
    let events = lab.kubernetes.list("events", None);
    let about = events.iter().filter(|e| e["involvedObject"]["name"] == name);
    about.filter_map(|e| e["reason"].as_str().map(str::to_owned)).collect()
}

/// Lets everything come to rest; says why not when it does not.
pub fn rest(lab: &mut Laboratory) {
    assert!(
        lab.settle(DAY_MS),
        "it does not settle: {:#?}\n{:#?}",
        lab.controller().plan(),
        lab.controller().waiting().collect::<Vec<_>>()
    );
}

/// Makes a Pod and gives it its status, as scheduler and kubelet do.
pub fn create_pod(lab: &mut Laboratory, pod: Value) {
    let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
    let status = json!({"status": pod["status"]});
    create(lab, pod);
    merge(lab, "pods", &name, Part::Status, status);
}

pub const EGRESS: &str = "kubernetes.azure.com/service-egress-gateway";

pub fn texts<'a>(value: &'a Value, pointer: &str, key: &str) -> Vec<&'a str> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|item| item[key].as_str()).collect()
}

/// A node's addresses in the virtual network.
pub fn internal_ips(node: &Value) -> Vec<&str> {
    let all = node.pointer("/status/addresses").and_then(Value::as_array);
    let internal = all.into_iter().flatten().filter(|entry| entry["type"] == "InternalIP");
    internal.filter_map(|entry| entry["address"].as_str()).collect()
}

pub fn is_alive(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null() && runs(pod)
}

fn runs(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Running"))
}

pub fn is_ready(pod: &Value) -> bool {
    let ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
    pod["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(ready))
}

/// The location of a node with this address; of no node's, the address itself.
pub fn location_of(nodes: &[Value], host: &str) -> String {
    let family = |ip: &str| ip.contains(':');
    let found = nodes.iter().find(|node| internal_ips(node).contains(&host));
    let all = found.map(internal_ips).unwrap_or_default();
    let same = all.into_iter().filter(|ip| family(ip) == family(host)).min();
    same.unwrap_or(host).to_owned()
}

/// Pods that terminate and still serve, and whether they count where another one is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lingering {
    Last,
    Always,
}

/// The table as the cluster wants it, made from the cluster alone.
pub fn wanted(lab: &Laboratory) -> Table {
    wanted_with(lab, Lingering::Last)
}

pub fn wanted_with(lab: &Laboratory, lingering: Lingering) -> Table {
    let list = |plural: &str| -> Vec<Value> {
        lab.kubernetes.list(plural, None).iter().map(|o| Value::clone(o)).collect()
    };
    let (nodes, pods, services) = (list("nodes"), list("pods"), list("services"));
    let mut found = Table::new();
    for service in services.iter().filter(|s| wants(s)) {
        let uid = service["metadata"]["uid"].as_str().expect("a UID");
        let app = &service["spec"]["selector"]["app"];
        let chosen = pods.iter().filter(|p| p["metadata"]["labels"]["app"] == *app && is_ready(p));
        let mut going = Vec::new();
        let mut backed = false;
        for pod in chosen.filter(|p| runs(p)) {
            let node = nodes.iter().find(|n| n["metadata"]["name"] == pod["spec"]["nodeName"]);
            let Some(node) = node else { continue };
            let ips = internal_ips(node);
            let ip = texts(pod, "/status/podIPs", "ip").into_iter().find(|ip| ip.contains('.'));
            let home = ips.into_iter().filter(|ip| ip.contains('.')).min();
            let (Some(ip), Some(home)) = (ip, home) else { continue };
            let key = (home.to_owned(), ip.to_owned());
            if is_alive(pod) {
                backed = true;
                found.entry(key).or_default().insert(uid.to_owned());
            } else {
                going.push(key);
            }
        }
        for key in going.into_iter().filter(|_| !backed || lingering == Lingering::Always) {
            found.entry(key).or_default().insert(uid.to_owned());
        }
    }
    for pod in pods.iter().filter(|p| is_alive(p)) {
        let label = pod["metadata"]["labels"][EGRESS].as_str().filter(|l| !l.is_empty());
        let Some(label) = label else { continue };
        for ip in texts(pod, "/status/podIPs", "ip") {
            let hosts = texts(pod, "/status/hostIPs", "ip");
            let host = hosts.into_iter().find(|host| host.contains(':') == ip.contains(':'));
            if let Some(host) = host {
                let ip = ip.parse::<IpAddr>().expect("an address").to_string();
                let key = (location_of(&nodes, host), ip);
                found.entry(key).or_default().insert(label.to_owned());
            }
        }
    }
    found
}

pub fn wants(service: &Value) -> bool {
    service["spec"]["type"] == "LoadBalancer" && service["metadata"]["deletionTimestamp"].is_null()
}

/// Everything is as the cluster wants it: the table, who gets traffic, and the way out.
pub fn check(lab: &Laboratory, when: &str) {
    let wanted = wanted(lab);
    assert_eq!(table(lab), wanted, "{when}: the table");
    for service in lab.kubernetes.list("services", None).iter().filter(|s| wants(s)) {
        let name = service["metadata"]["name"].as_str().expect("a name");
        let uid = service["metadata"]["uid"].as_str().expect("a UID");
        let address = address_of(lab, name);
        let address = address.unwrap_or_else(|| panic!("{when}: {name} has no address"));
        let port = service["spec"]["ports"][0]["port"].as_u64().expect("a port");
        let traffic = lab.azure.traffic(&address, "Tcp", u16::try_from(port).expect("small"));
        let got: BTreeSet<String> =
            traffic.expect("there is a rule").backends.into_iter().collect();
        let want: BTreeSet<String> = wanted
            .iter()
            .filter(|(_, names)| names.contains(uid))
            .map(|((_, ip), _)| ip.clone())
            .collect();
        assert_eq!(got, want, "{when}: the backends of {name}");
    }
    for ((_, ip), names) in &wanted {
        let label = names.iter().find(|name| name.starts_with("team"));
        let suffix = if ip.contains(':') { "-pip-v6" } else { "-pip" };
        let pip = match label {
            Some(label) => lab.azure.resource(&network_ip(&format!("{label}{suffix}"))),
            None => lab.azure.resource(&network_ip("default-natgw-pip")),
        };
        let out = pip.and_then(|p| p["properties"]["ipAddress"].as_str().map(str::to_owned));
        let out: Vec<String> = out.into_iter().collect();
        assert_eq!(lab.azure.egress(ip), out, "{when}: the way out of {ip}");
    }
}

fn network_ip(name: &str) -> String {
    network(&format!("publicIPAddresses/{name}"))
}

/// A Pod of an application, on a node, ready.
pub fn app_pod(name: &str, app: &str, ip: &str, node: u32) -> Value {
    let mut pod = egress_pod(name, "", &[ip], node);
    pod["metadata"]["labels"] = json!({"app": app});
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    pod
}

/// A Service whose Pods are those of an application.
pub fn app_service(index: u32, app: &str) -> Value {
    let mut service = super::service(index);
    service["spec"]["selector"] = json!({"app": app});
    service
}
