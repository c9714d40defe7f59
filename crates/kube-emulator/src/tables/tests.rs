use super::*;
use crate::kinds::by_plural;

fn cells(plural: &str, object: &Value) -> Vec<Value> {
    let kind = by_plural(plural).unwrap();
    let cells = row(kind, object, 1_700_000_060_000);
    assert_eq!(cells.len(), columns(kind).len(), "{plural}: a cell for each column");
    cells
}

fn meta(name: &str) -> Value {
    json!({"name": name, "creationTimestamp": "2023-11-14T22:13:20Z"})
}

#[test]
fn services_show_ports_and_addresses() {
    let service = json!({"metadata": meta("s"),
        "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.9", "selector": {"a": "b"},
            "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"},
                {"port": 53, "protocol": "UDP"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let want = ["s", "LoadBalancer", "10.0.0.9", "192.0.2.1", "80:30000/TCP,53/UDP", "60s", "a=b"];
    assert_eq!(cells("services", &service), want);
}

#[test]
fn nodes_show_readiness_and_roles() {
    let mut metadata = meta("n");
    metadata["labels"] = json!({"node-role.kubernetes.io/control-plane": ""});
    let node = json!({"metadata": metadata, "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.2.0.1"}]}});
    let found = cells("nodes", &node);
    assert_eq!(found[1], "Ready,SchedulingDisabled");
    assert_eq!(found[2], "control-plane");
    assert_eq!(found[5], "10.2.0.1");
}

#[test]
fn every_kind_has_as_many_cells_as_columns() {
    for kind in crate::kinds::KINDS {
        cells(kind.plural, &json!({"metadata": meta("x")}));
    }
}

#[test]
fn accept_headers_choose_the_form() {
    let json = [
        ("", Form::Plain),
        ("*/*", Form::Plain),
        ("application/json, application/vnd.kubernetes.protobuf", Form::Plain),
        (
            "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
            Form::Plain,
        ),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form::Table),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form::Plain),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Form::Metadata),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
            Form::Plain,
        ),
    ];
    let protobuf = [
        ("application/vnd.kubernetes.protobuf, application/json", Form::Plain),
        ("application/vnd.kubernetes.protobuf,*/*", Form::Plain),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Form::Metadata,
        ),
    ];
    let json = json.map(|(accept, form)| (accept, form, Coding::Json));
    let protobuf = protobuf.map(|(accept, form)| (accept, form, Coding::Protobuf));
    for (accept, form, coding) in json.into_iter().chain(protobuf) {
        assert_eq!(Form::from_accept(accept).unwrap(), (form, coding), "{accept}");
    }
    let only = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io";
    let error = Form::from_accept(only).unwrap_err();
    assert_eq!(error.code(), 406);
}
