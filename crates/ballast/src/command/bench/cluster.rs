//! The cluster that is measured: nodes, Services and the EndpointSlices of Pods that no other
//! object stands for, as the controller does not watch those Pods.

use crate::exit::{Exit, Failure};
use azure_emulator::{Azure, SampleMachine};
use kube_emulator::{ObjectRef, Part, Patch, Shared};
use model::kubernetes::{GATEWAY_FINALIZER, SERVICE_FINALIZER};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Where the sample's network resources are.
const NETWORK: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg\
                       /providers/Microsoft.Network";
/// Endpoints a slice holds at most, as in a real cluster.
const SLICE: u32 = 100;

/// How large the cluster is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Services.
    pub services: u32,
    /// Pods a Service.
    pub pods: u32,
}

/// The cluster.
pub(super) struct Cluster {
    store: Shared,
    machines: Vec<SampleMachine>,
    size: Size,
}

impl Cluster {
    /// A cluster of nodes.
    pub(super) fn new(
        store: Shared,
        machines: Vec<SampleMachine>,
        size: Size,
    ) -> Result<Self, Failure> {
        let cluster = Self { store, machines, size };
        for machine in &cluster.machines {
            cluster.create(json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": machine.name, "labels": {
                    "kubernetes.io/hostname": machine.name, "kubernetes.io/os": "linux",
                    "topology.kubernetes.io/zone": format!("eastus-{}", machine.zone)}},
                "spec": {"providerID": format!("azure://{}", machine.id)},
                "status": {"addresses": [
                    {"type": "InternalIP", "address": machine.ipv4},
                    {"type": "Hostname", "address": machine.name}]}}))?;
        }
        Ok(cluster)
    }

    /// All Pods' addresses.
    pub(super) fn addresses(&self) -> usize {
        self.size.services as usize * self.size.pods as usize
    }

    /// Creates every Service with its slices.
    pub(super) fn create_services(&self) -> Result<(), Failure> {
        for n in 0..self.size.services {
            let name = name(n);
            let service = self.create(json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
                "spec": {"type": "LoadBalancer", "selector": {"app": name},
                    "allocateLoadBalancerNodePorts": false,
                    "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}))?;
            let uid = service["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            for part in 0..self.size.pods.div_ceil(SLICE) {
                let pods = part * SLICE..self.size.pods.min((part + 1) * SLICE);
                let endpoints: Vec<Value> = pods.map(|pod| self.endpoint(n, pod)).collect();
                self.create(slice(&name, &uid, part, endpoints))?;
            }
        }
        Ok(())
    }

    /// Puts in place what the controller would have made of every Service.
    pub(super) fn prepare(&self, azure: &mut Azure) -> Result<(), Failure> {
        let all = self.store.with(|store, _| store.list("services", None));
        let ours = all.iter().filter(|s| s["spec"]["type"] == "LoadBalancer");
        let (mut resources, mut services, mut locations) = (Vec::new(), Map::new(), Map::new());
        for (n, service) in (0..).zip(ours) {
            let uid = service["metadata"]["uid"].as_str().unwrap_or_default();
            let [_, a, b, c] = u32::to_be_bytes(n);
            let ip = format!("21.{a}.{b}.{c}");
            let made = Made::of(uid, &ip);
            resources.extend([made.ip, made.balancer]);
            services.insert(uid.to_owned(), made.entry);
            for pod in 0..self.size.pods {
                let endpoint = self.endpoint(n, pod);
                let number = n * self.size.pods + pod;
                let node = &self.machines[number as usize % self.machines.len()].ipv4;
                let at = locations.entry(node.clone()).or_insert_with(|| json!({}));
                let address = endpoint["addresses"][0].as_str().unwrap_or_default();
                at[address] = json!([uid]);
            }
            self.settle(service, &ip)?;
        }
        azure.seed(resources);
        let tables = json!({"services": services, "locations": locations});
        azure.seed_gateway(&format!("{NETWORK}/serviceGateways/servicegateway"), &tables);
        Ok(())
    }

    /// Finalizers and address of a Service.
    fn settle(&self, service: &Value, ip: &str) -> Result<(), Failure> {
        let name = service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let outcome = self.store.with(|store, now| {
            let object = ObjectRef::new("services", "default", &name);
            let finalizers = Patch::Merge(json!({"metadata": {"finalizers":
                [SERVICE_FINALIZER, GATEWAY_FINALIZER]}}));
            store.patch(object, Part::Main, &finalizers, now)?;
            let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}});
            store.patch(object, Part::Status, &Patch::Merge(status), now)
        });
        let failed = |e| Failure::new(Exit::Internal, format!("preparing {name} failed: {e}"));
        outcome.map(drop).map_err(failed)
    }

    /// The first Pod of a Service's last slice comes or goes.
    pub(super) fn set_pod(&self, service: u32, pod: Presence) -> Result<(), Failure> {
        let name = name(service);
        let part = self.size.pods.div_ceil(SLICE) - 1;
        let slice = format!("{name}-{part:05}");
        let outcome = self.store.with(|store, now| {
            let found = store.get(ObjectRef::new("endpointslices", "default", &slice))?;
            let mut next = Value::clone(&found);
            if let Some(list) = next["endpoints"].as_array_mut() {
                match pod {
                    Presence::Gone => drop(list.remove(0)),
                    Presence::There => list.insert(0, self.endpoint(service, part * SLICE)),
                }
            }
            store.replace(next, now)
        });
        let failed = |e| Failure::new(Exit::Internal, format!("changing a slice failed: {e}"));
        outcome.map(drop).map_err(failed)
    }

    /// Deletes every Service; its slices go with it.
    pub(super) fn delete_services(&self) -> Result<(), Failure> {
        for n in 0..self.size.services {
            let gone = self.store.with(|store, now| {
                store.delete(ObjectRef::new("services", "default", &name(n)), now)
            });
            let failed = |e| Failure::new(Exit::Internal, format!("deleting failed: {e}"));
            gone.map_err(failed)?;
        }
        Ok(())
    }

    /// Services with an address, and all of them that are load balancers.
    pub(super) fn services(&self) -> (usize, usize) {
        let all = self.store.with(|store, _| store.list("services", None));
        let (mut with, mut count) = (0, 0);
        for service in all.iter().filter(|s| s["spec"]["type"] == "LoadBalancer") {
            count += 1;
            with += usize::from(!service["status"]["loadBalancer"]["ingress"][0]["ip"].is_null());
        }
        (with, count)
    }

    fn create(&self, object: Value) -> Result<Arc<Value>, Failure> {
        let made = self.store.with(|store, now| store.create(object, now));
        let failed = |e| Failure::new(Exit::Internal, format!("creating the cluster failed: {e}"));
        made.map_err(failed)
    }

    fn endpoint(&self, service: u32, pod: u32) -> Value {
        let number = service * self.size.pods + pod;
        let node = &self.machines[number as usize % self.machines.len()];
        let [_, a, b, c] = number.to_be_bytes();
        let pod = format!("{}-6d4cf56db6-{number:05x}", name(service));
        json!({"addresses": [format!("11.{a}.{b}.{c}")], "nodeName": node.name,
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "targetRef": {"kind": "Pod", "name": pod, "namespace": "default",
                "uid": format!("{number:08x}-5555-4666-8777-888888888888")},
            "zone": format!("eastus-{}", node.zone)})
    }
}

/// What Azure has of a Service.
struct Made {
    ip: Value,
    balancer: Value,
    entry: Value,
}

impl Made {
    fn of(uid: &str, address: &str) -> Self {
        let ip = format!("{NETWORK}/publicIPAddresses/{uid}-pip");
        let balancer = format!("{NETWORK}/loadBalancers/{uid}");
        let pool = format!("{balancer}/backendAddressPools/{uid}");
        let rule = json!({"name": "rule-tcp-80", "properties": {
            "backendAddressPool": {"id": pool}, "backendPort": 8080, "enableFloatingIP": false,
            "enableTcpReset": true, "frontendPort": 80, "idleTimeoutInMinutes": 4,
            "frontendIPConfiguration": {"id":
                format!("{balancer}/frontendIPConfigurations/frontend")},
            "protocol": "Tcp"}});
        Self {
            entry: json!({"name": uid, "properties": {"isDefault": false,
                "loadBalancerBackendPools": [{"id": pool}], "serviceType": "Inbound"}}),
            balancer: json!({"id": balancer, "location": "eastus", "sku": {"name": "Service"},
                "properties": {"scope": "Public",
                    "backendAddressPools": [{"name": uid, "properties": {}}],
                    "frontendIPConfigurations": [{"name": "frontend", "properties":
                        {"publicIPAddress": {"id": ip}}}],
                    "loadBalancingRules": [rule]}}),
            ip: json!({"id": ip, "location": "eastus", "sku": {"name": "StandardV2"},
                "properties": {"ipAddress": address, "publicIPAddressVersion": "IPv4",
                    "publicIPAllocationMethod": "Static"}}),
        }
    }
}

/// Whether a Pod is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Presence {
    /// It is.
    There,
    /// It is not.
    Gone,
}

fn name(service: u32) -> String {
    format!("web-{service:05}")
}

fn slice(name: &str, uid: &str, part: u32, endpoints: Vec<Value>) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{name}-{part:05}"), "namespace": "default",
            "labels": {"kubernetes.io/service-name": name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid,
                "controller": true, "blockOwnerDeletion": true}]},
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]})
}
