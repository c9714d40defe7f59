//! Objects of the sample workload.

use azure_emulator::{SampleMachine, SampleOptions};
use edge::kubernetes::sources::EGRESS_LABEL;
use serde_json::{Value, json};

/// An object, and its status.
pub(super) type WithStatus = (Value, Value);

/// A node on a machine.
pub(super) fn node(machine: &SampleMachine, sample: &SampleOptions, at: u32) -> WithStatus {
    let SampleMachine { name, ipv4, zone, id, .. } = machine;
    let location = &sample.location;
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64", "topology.kubernetes.io/region": location,
        "topology.kubernetes.io/zone": format!("{location}-{zone}")}},
        "spec": {"providerID": format!("azure://{id}"), "podCIDR": format!("10.244.{at}.0/24")}});
    let status = json!({
        "addresses": [{"type": "InternalIP", "address": ipv4},
            {"type": "Hostname", "address": name}],
        "capacity": {"cpu": "2", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
            "message": "emulated"}],
        "nodeInfo": {"kubeletVersion": "v1.33.0", "osImage": "emulated",
            "operatingSystem": "linux", "architecture": "amd64", "kernelVersion": "",
            "containerRuntimeVersion": "emulated://1", "kubeProxyVersion": "", "machineID": "",
            "systemUUID": "", "bootID": ""}});
    (object, status)
}

/// Where a pod runs.
pub(super) struct Seat<'a> {
    /// The machine.
    pub machine: &'a SampleMachine,
    /// The pod's address.
    pub address: String,
}

/// A ready pod of an application; with `egress`, it leaves through that gateway.
pub(super) fn pod(app: &str, name: &str, seat: &Seat<'_>, egress: Option<&str>) -> WithStatus {
    let mut labels = json!({"app": app});
    if let Some(egress) = egress {
        labels[EGRESS_LABEL] = json!(egress);
    }
    let image = "registry.k8s.io/e2e-test-images/agnhost:2.53";
    let object = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"nodeName": seat.machine.name, "containers": [{"name": "main", "image": image,
            "ports": [{"name": "http", "containerPort": 8080}]}]}});
    let host = &seat.machine.ipv4;
    let status = json!({"phase": "Running", "hostIP": host, "hostIPs": [{"ip": host}],
        "podIP": seat.address, "podIPs": [{"ip": seat.address}],
        "conditions": [{"type": "Ready", "status": "True"},
            {"type": "ContainersReady", "status": "True"}],
        "containerStatuses": [{"name": "main", "ready": true, "started": true, "restartCount": 0,
            "image": image, "imageID": "", "state": {"running": {}}}]});
    (object, status)
}

/// Whom a Service is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Everybody.
    Public,
    /// The virtual network.
    Internal,
}

/// A Service of type LoadBalancer before an application's pods.
pub(super) fn service(name: &str, audience: Audience) -> Value {
    let annotations = match audience {
        Audience::Public => json!({}),
        Audience::Internal => {
            json!({"service.beta.kubernetes.io/azure-load-balancer-internal": "true"})
        }
    };
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "selector": {"app": name},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}})
}
