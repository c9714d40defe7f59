//! The columns `kubectl get` shows for each kind.

use crate::json::{at, items, text, texts};
use crate::kinds::Kind;
use crate::time::format_age;
use serde_json::{Value, json};

/// A column of a table.
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
}

impl Column {
    pub(super) fn json(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format,
            "description": self.name, "priority": self.priority})
    }
}

const fn text_column(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

const fn wide_column(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 1 }
}

const fn number_column(name: &'static str) -> Column {
    Column { name, kind: "integer", format: "", priority: 0 }
}

const NAME: Column = Column { name: "Name", kind: "string", format: "name", priority: 0 };

/// The columns of a kind; the first ones are always shown, the wide ones on demand.
pub(super) fn columns(kind: &Kind) -> Vec<Column> {
    let plain = |names: &[&'static str]| names.iter().copied().map(text_column).collect();
    let wide = |names: &[&'static str]| names.iter().copied().map(wide_column).collect();
    let (shown, hidden): (Vec<Column>, Vec<Column>) = match kind.plural {
        "services" => {
            let names = ["Type", "Cluster-IP", "External-IP", "Port(s)", "Age"];
            (plain(&names), wide(&["Selector"]))
        }
        "nodes" => (
            plain(&["Status", "Roles", "Age", "Version"]),
            wide(&[
                "Internal-IP",
                "External-IP",
                "OS-Image",
                "Kernel-Version",
                "Container-Runtime",
            ]),
        ),
        "pods" => (
            plain(&["Ready", "Status", "Restarts", "Age"]),
            wide(&["IP", "Node", "Nominated Node", "Readiness Gates"]),
        ),
        "events" => return event_columns(),
        "endpointslices" => (plain(&["AddressType", "Ports", "Endpoints", "Age"]), Vec::new()),
        "namespaces" => (plain(&["Status", "Age"]), Vec::new()),
        "configmaps" => (vec![number_column("Data"), text_column("Age")], Vec::new()),
        "secrets" => {
            (vec![text_column("Type"), number_column("Data"), text_column("Age")], Vec::new())
        }
        "leases" => (plain(&["Holder", "Age"]), Vec::new()),
        _ => (plain(&["Age"]), Vec::new()),
    };
    std::iter::once(NAME).chain(shown).chain(hidden).collect()
}

fn event_columns() -> Vec<Column> {
    vec![
        text_column("Last Seen"),
        text_column("Type"),
        text_column("Reason"),
        text_column("Object"),
        wide_column("Subobject"),
        wide_column("Source"),
        text_column("Message"),
        wide_column("First Seen"),
        wide_column("Count"),
        Column { priority: 1, ..NAME },
    ]
}

/// The cells of one object.
pub(super) fn row(kind: &Kind, object: &Value, now_ms: u64) -> Vec<Value> {
    let name = json!(text(object, "/metadata/name"));
    let age = json!(format_age(text(object, "/metadata/creationTimestamp"), now_ms));
    match kind.plural {
        "services" => service_row(object, name, age),
        "nodes" => node_row(object, name, age),
        "pods" => pod_row(object, name, age),
        "events" => event_row(object, name, now_ms),
        "endpointslices" => slice_row(object, name, age),
        "namespaces" => vec![name, json!(text(object, "/status/phase")), age],
        "configmaps" => vec![name, json!(data_count(object)), age],
        "secrets" => vec![name, json!(text(object, "/type")), json!(data_count(object)), age],
        "leases" => vec![name, json!(text(object, "/spec/holderIdentity")), age],
        _ => vec![name, age],
    }
}

fn data_count(object: &Value) -> usize {
    let count = |key| object.get(key).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    count("data") + count("binaryData")
}

fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

fn service_row(service: &Value, name: Value, age: Value) -> Vec<Value> {
    let ports: Vec<String> = items(service, "/spec/ports")
        .iter()
        .map(|port| {
            let (number, protocol) = (at(port, "/port"), text(port, "/protocol"));
            match at(port, "/nodePort").as_u64() {
                Some(node_port) => format!("{number}:{node_port}/{protocol}"),
                None => format!("{number}/{protocol}"),
            }
        })
        .collect();
    let selector: Vec<String> = at(service, "/spec/selector")
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    vec![
        name,
        json!(text(service, "/spec/type")),
        or_none(text(service, "/spec/clusterIP")),
        json!(external_address(service)),
        or_none(&ports.join(",")),
        age,
        or_none(&selector.join(",")),
    ]
}

fn external_address(service: &Value) -> String {
    let fixed = texts(service, "/spec/externalIPs");
    match text(service, "/spec/type") {
        "ExternalName" => text(service, "/spec/externalName").to_string(),
        "LoadBalancer" => {
            let mut shown: Vec<String> = items(service, "/status/loadBalancer/ingress")
                .iter()
                .map(|entry| match text(entry, "/ip") {
                    "" => text(entry, "/hostname").to_string(),
                    ip => ip.to_string(),
                })
                .collect();
            shown.extend(fixed);
            if shown.is_empty() { "<pending>".to_string() } else { shown.join(",") }
        }
        _ if fixed.is_empty() => "<none>".to_string(),
        _ => fixed.join(","),
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let found = items(object, "/status/conditions").iter().find(|one| text(one, "/type") == kind);
    found.map_or("", |one| text(one, "/status"))
}

fn node_row(node: &Value, name: Value, age: Value) -> Vec<Value> {
    let mut status = match condition(node, "Ready") {
        "True" => "Ready".to_string(),
        "" => "Unknown".to_string(),
        _ => "NotReady".to_string(),
    };
    if at(node, "/spec/unschedulable") == &json!(true) {
        status.push_str(",SchedulingDisabled");
    }
    let roles: Vec<&str> = at(node, "/metadata/labels")
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => Some(role),
            _ if key == "kubernetes.io/role" => value.as_str(),
            _ => None,
        })
        .collect();
    let address = |kind: &str| {
        let found = items(node, "/status/addresses").iter().find(|one| text(one, "/type") == kind);
        or_none(found.map_or("", |one| text(one, "/address")))
    };
    let fact = |key: &str| match text(node, &format!("/status/nodeInfo/{key}")) {
        "" => json!("<unknown>"),
        value => json!(value),
    };
    vec![
        name,
        json!(status),
        or_none(&roles.join(",")),
        age,
        json!(text(node, "/status/nodeInfo/kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        fact("osImage"),
        fact("kernelVersion"),
        fact("containerRuntimeVersion"),
    ]
}

fn pod_row(pod: &Value, name: Value, age: Value) -> Vec<Value> {
    let states = items(pod, "/status/containerStatuses");
    let total = items(pod, "/spec/containers").len();
    let ready = states.iter().filter(|one| at(one, "/ready") == &json!(true)).count();
    let restarts: u64 = states.iter().filter_map(|one| at(one, "/restartCount").as_u64()).sum();
    let status = if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        "Terminating"
    } else if text(pod, "/status/reason").is_empty() {
        text(pod, "/status/phase")
    } else {
        text(pod, "/status/reason")
    };
    vec![
        name,
        json!(format!("{ready}/{total}")),
        json!(status),
        json!(restarts.to_string()),
        age,
        or_none(text(pod, "/status/podIP")),
        or_none(text(pod, "/spec/nodeName")),
        or_none(text(pod, "/status/nominatedNodeName")),
        json!("<none>"),
    ]
}

fn event_row(event: &Value, name: Value, now_ms: u64) -> Vec<Value> {
    // The row may be of either face of an Event.
    let either = |old: &str, new: &str| match at(event, old) {
        Value::Null => at(event, new).clone(),
        value => value.clone(),
    };
    let word = |old: &str, new: &str| either(old, new).as_str().unwrap_or("").to_string();
    let about = either("/involvedObject", "/regarding");
    let source = either("/source", "/deprecatedSource");
    let fallback = match word("/eventTime", "/eventTime") {
        time if time.is_empty() => text(event, "/metadata/creationTimestamp").to_string(),
        time => time,
    };
    let moment = |found: String| {
        let time = if found.is_empty() { fallback.clone() } else { found };
        json!(format_age(&time, now_ms))
    };
    let series = word("/series/lastObservedTime", "/series/lastObservedTime");
    let last = match series.is_empty() {
        true => word("/lastTimestamp", "/deprecatedLastTimestamp"),
        false => series,
    };
    let first = word("/firstTimestamp", "/deprecatedFirstTimestamp");
    let count = either("/count", "/deprecatedCount").as_u64().unwrap_or(1);
    let component = match text(&source, "/component") {
        "" => word("/reportingComponent", "/reportingController"),
        component => component.to_string(),
    };
    let host = text(&source, "/host");
    let place = if host.is_empty() { component } else { format!("{component}, {host}") };
    let object = format!("{}/{}", text(&about, "/kind").to_lowercase(), text(&about, "/name"));
    vec![
        moment(last),
        json!(text(event, "/type")),
        json!(text(event, "/reason")),
        json!(object),
        json!(text(&about, "/fieldPath")),
        json!(place),
        json!(word("/message", "/note").trim()),
        moment(first),
        json!(count.to_string()),
        name,
    ]
}

/// At most three of a list, and how many more there are.
fn abridged(list: &[String]) -> Value {
    match list {
        [] => json!("<unset>"),
        [a, b, c, rest @ ..] if !rest.is_empty() => {
            json!(format!("{a},{b},{c} + {} more...", rest.len()))
        }
        few => json!(few.join(",")),
    }
}

fn slice_row(slice: &Value, name: Value, age: Value) -> Vec<Value> {
    let ports: Vec<String> = items(slice, "/ports")
        .iter()
        .map(|port| match at(port, "/port").as_u64() {
            Some(number) => number.to_string(),
            None => "*".to_string(),
        })
        .collect();
    let addresses: Vec<String> =
        items(slice, "/endpoints").iter().flat_map(|one| texts(one, "/addresses")).collect();
    vec![name, json!(text(slice, "/addressType")), abridged(&ports), abridged(&addresses), age]
}
