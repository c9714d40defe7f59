//! The cluster and the cloud that are measured.

use super::Terms;
use azure_emulator::{
    Azure, Options as AzureOptions, SampleGateway, SampleMachine, SampleOptions, Switch,
    sample_cloud_config, sample_estate,
};
use control::Options;
use kube_emulator::{ObjectRef, Ownership, Part, Patch, Store, StoreOptions};
use serde_json::{Value, json};
use sim::{Config, Laboratory, Promises, Scrutiny};
use std::collections::BTreeSet;

/// Changes of a kind that the store remembers: enough that no watch expires.
const HISTORY: usize = 10_000_000;

/// Endpoints a slice holds at most, as in a real cluster.
const SLICE: u32 = 100;

/// Machines of which some are nodes.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) lab: Laboratory,
    machines: Vec<SampleMachine>,
    /// What the spare machines are in Azure: there when they become nodes.
    spare: Vec<Value>,
}

/// What stands at the beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) nodes: u32,
    /// Machines that come later.
    pub(super) spare: u32,
    /// Scale sets that the nodes are spread over, each behind a load balancer of its own.
    pub(super) sets: u32,
    pub(super) gateway: SampleGateway,
}

/// The name of a scale set: the first is the sample's.
fn set(number: u32) -> String {
    if number == 0 { "vmss".to_owned() } else { format!("set{number:02}") }
}

impl Site {
    pub(super) fn new(plot: Plot, more: &Value) -> Self {
        let machines = plot.nodes + plot.spare;
        let sample = SampleOptions { machines, gateway: plot.gateway, ..SampleOptions::default() };
        let mut config = sample_cloud_config("http://127.0.0.1:1", &sample);
        if let Some(keys) = config.as_object_mut() {
            // Keys without effect, or that do not go with the SKU.
            keys.remove("cloudProviderBackoff");
            if plot.gateway == SampleGateway::WithDefaultNat {
                keys.remove("disableOutboundSNAT");
            }
            keys.extend(more.as_object().cloned().unwrap_or_default());
        }
        if plot.sets > 1 {
            let one = |n: u32| match n {
                0 => json!({"name": "kubernetes", "primaryVMSet": set(0)}),
                _ => json!({"name": format!("balancer-{n:02}"), "primaryVMSet": set(n)}),
            };
            let all: Vec<Value> = (0..plot.sets).map(one).collect();
            config["multipleStandardLoadBalancerConfigurations"] = json!(all);
        }
        let mut azure = Azure::new(AzureOptions {
            defaults: Switch::Off,
            log_bodies: Switch::Off,
            ..AzureOptions::default()
        });
        let first = SampleOptions { machines: plot.nodes, ..sample.clone() };
        let there = sample_estate(&first);
        let spare = sample_estate(&sample).into_iter();
        let ids: BTreeSet<&str> = there.iter().filter_map(|r| r["id"].as_str()).collect();
        let spare = spare.filter(|r| r["id"].as_str().is_some_and(|id| !ids.contains(id)));
        let spare: Vec<Value> = spare.collect();
        azure.seed(there);
        let mut store = Store::new(StoreOptions {
            ownership: Ownership::AppliedOnly,
            history_limit: HISTORY,
            ..StoreOptions::default()
        });
        let mut machines = sample.machines();
        for (machine, number) in machines.iter_mut().zip(0..) {
            machine.id = machine.id.replace("/vmss/", &format!("/{}/", set(number % plot.sets)));
        }
        for machine in machines.iter().take(plot.nodes as usize) {
            store.create(node(machine), 0).expect("an empty store takes a node");
        }
        let options = Options { limits: Terms::Unlimited.limits(), ..Options::default() };
        let mut lab = Laboratory::new(store, azure, Config::new(config), options);
        lab.scrutiny = Scrutiny::None;
        lab.promises = Promises::NotJudged;
        Self { lab, machines, spare }
    }

    /// From now on Azure answers like this, and the controller that runs knows it from its start.
    pub(super) fn set_terms(&mut self, terms: Terms) {
        self.lab.azure.options_mut().throttle = terms.throttle();
        self.lab.azure.options_mut().lro_ms = terms.operation_ms();
        self.lab.azure_latency_ms = terms.call_ms();
        self.lab.restart_believing(terms.limits());
    }

    /// How long each call takes from now on.
    pub(super) fn set_call_ms(&mut self, ms: u64) {
        self.lab.azure_latency_ms = ms;
    }

    /// A Service of one port whose backends are nodes.
    pub(super) fn create_service(&mut self, number: u32) {
        let object = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name(number), "namespace": "default"},
            "spec": {"type": "LoadBalancer", "selector": {"app": name(number)},
                "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}});
        self.create(object);
    }

    /// A Service without node ports, with so many ready Pods spread over the nodes.
    pub(super) fn create_container_service(&mut self, number: u32, pods: u32, nodes: u32) {
        let object = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name(number), "namespace": "default"},
            "spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
                "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}});
        self.create(object);
        for part in 0..pods.div_ceil(SLICE) {
            let all = part * SLICE..pods.min((part + 1) * SLICE);
            self.create_slice(
                number,
                part,
                &all.map(|p| number * pods + p).collect::<Vec<_>>(),
                nodes,
            );
        }
    }

    fn create_slice(&mut self, number: u32, part: u32, pods: &[u32], nodes: u32) {
        let service = name(number);
        let object = ObjectRef::new("services", "default", &service);
        let uid = (self.lab.kubernetes.get(object))
            .map_or(Value::Null, |service| service["metadata"]["uid"].clone());
        let endpoints = self.endpoints(pods, nodes);
        self.create(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": slice(number, part), "namespace": "default",
                "labels": {"kubernetes.io/service-name": service},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": service,
                    "uid": uid, "controller": true}]},
            "addressType": "IPv4", "endpoints": endpoints, "ports": []}));
    }

    /// Ready Pods by number, each on a node.
    fn endpoints(&self, pods: &[u32], nodes: u32) -> Vec<Value> {
        let endpoint = |pod: &u32| {
            let [_, a, b, c] = pod.to_be_bytes();
            let node = &self.machines[(pod % nodes) as usize].name;
            json!({"addresses": [format!("11.{a}.{b}.{c}")], "nodeName": node,
                "conditions": {"ready": true}})
        };
        pods.iter().map(endpoint).collect()
    }

    /// The Pods of one slice are these from now on.
    pub(super) fn set_slice(&mut self, number: u32, part: u32, pods: &[u32], nodes: u32) {
        let body = json!({"endpoints": self.endpoints(pods, nodes)});
        let (now, slice) = (self.lab.now_ms, slice(number, part));
        let object = ObjectRef::new("endpointslices", "default", &slice);
        self.lab
            .kubernetes
            .patch(object, Part::Main, &Patch::Merge(body), now)
            .expect("a slice that this made can be changed");
    }

    pub(super) fn delete_service(&mut self, number: u32) {
        self.delete("services", "default", &name(number));
    }

    /// The spare machines come, and one of them becomes a node.
    pub(super) fn add_node(&mut self, number: u32) {
        self.lab.azure.seed(std::mem::take(&mut self.spare));
        let object = node(&self.machines[number as usize]);
        self.create(object);
    }

    /// A node leaves; its machine stays for now.
    pub(super) fn remove_node(&mut self, number: u32) {
        let name = self.machines[number as usize].name.clone();
        self.delete("nodes", "", &name);
    }

    pub(super) fn create(&mut self, object: Value) {
        let now = self.lab.now_ms;
        self.lab.kubernetes.create(object, now).expect("the store takes what is well-formed");
    }

    /// Another session affinity of a Service.
    pub(super) fn set_affinity(&mut self, number: u32, affinity: &str) {
        let body = json!({"spec": {"sessionAffinity": affinity}});
        let (now, name) = (self.lab.now_ms, name(number));
        let object = ObjectRef::new("services", "default", &name);
        let patch = Patch::Merge(body);
        self.lab.kubernetes.patch(object, Part::Main, &patch, now).expect("it can be changed");
    }

    pub(super) fn delete(&mut self, plural: &str, namespace: &str, name: &str) {
        let now = self.lab.now_ms;
        let object = ObjectRef::new(plural, namespace, name);
        self.lab.kubernetes.delete(object, now).expect("what this made can be deleted");
    }
}

fn name(number: u32) -> String {
    format!("web-{number:05}")
}

fn slice(number: u32, part: u32) -> String {
    format!("{}-{part:05}", name(number))
}

/// A node with a public IP of its own, so that its subnet is not read for outbound connectivity.
fn node(machine: &SampleMachine) -> Value {
    let outside = machine.ipv4.replacen("10.", "20.", 1);
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": machine.name, "labels": {"kubernetes.io/hostname": machine.name}},
        "spec": {"providerID": format!("azure://{}", machine.id)},
        "status": {"addresses": [{"type": "InternalIP", "address": machine.ipv4},
            {"type": "ExternalIP", "address": outside}]}})
}
