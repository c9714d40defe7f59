//! What a Pod's address takes in the World, counted as the allocator is asked for it: read from
//! JSON as Kubernetes and Azure send it.
//!
//! One test alone in its program: the count is of the whole process.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be unwrapped has failed it")]

use model::world::{Azure, Kubernetes, Need};
use model::{Group, Policy, ServiceName};
use observe::azure::Gathering;
use observe::config::Sources;
use observe::{Interner, KubernetesFact, Listing, apply, kubernetes};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::collections::{BTreeMap, BTreeSet};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NODES: u32 = 1_000;
const SERVICES: u32 = 2_000;
const PODS_EACH: u32 = 15;
/// What an allocator needs for itself at most: eight bytes of its own and rounding up to sixteen.
const OVERHEAD: usize = 16;

/// What has been taken since the region began and not been given back.
fn held(region: &Region<'_, System>) -> usize {
    let stats = region.change();
    let pieces = stats.allocations - stats.deallocations;
    stats.bytes_allocated - stats.bytes_deallocated + pieces * OVERHEAD
}

fn uid(service: u32) -> String {
    format!("{service:08x}-1111-4222-8333-0123456789ab")
}

fn pod(service: u32, pod: u32) -> (String, u32) {
    let number = service * PODS_EACH + pod;
    let [_, a, b, c] = number.to_be_bytes();
    (format!("11.{a}.{b}.{c}"), number % NODES)
}

fn service(n: u32) -> Value {
    let name = format!("web-{n:05}");
    json!({"metadata": {"name": name, "namespace": "default", "uid": uid(n),
            "resourceVersion": (10_000 + n).to_string(), "labels": {"app": name}},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80}]}})
}

fn node(n: u32) -> Value {
    let [_, _, high, low] = n.to_be_bytes();
    json!({"metadata": {"name": format!("aks-nodes-{n:06}"), "uid": uid(n),
            "resourceVersion": n.to_string()},
        "status": {"addresses": [
            {"type": "InternalIP", "address": format!("10.1.{high}.{low}")}]}})
}

fn slice(n: u32) -> Value {
    let name = format!("web-{n:05}");
    let endpoints: Vec<Value> = (0..PODS_EACH)
        .map(|k| {
            let (address, node) = pod(n, k);
            json!({"addresses": [address], "nodeName": format!("aks-nodes-{node:06}"),
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {"kind": "Pod", "name": format!("{name}-{k}")}})
        })
        .collect();
    json!({"metadata": {"name": format!("{name}-x7k2p"), "namespace": "default",
            "resourceVersion": (20_000 + n).to_string(),
            "labels": {"kubernetes.io/service-name": name},
            "ownerReferences": [{"kind": "Service", "name": name, "uid": uid(n)}]},
        "addressType": "IPv4", "endpoints": endpoints})
}

/// The gateway's table, one location an item.
fn table() -> Vec<Value> {
    let mut locations: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    for n in 0..SERVICES {
        for k in 0..PODS_EACH {
            let (address, node) = pod(n, k);
            let entry = json!({"address": address, "services": [uid(n)]});
            locations.entry(node).or_default().push(entry);
        }
    }
    let item = |(node, addresses): (u32, Vec<Value>)| {
        let [_, _, high, low] = node.to_be_bytes();
        json!({"addressLocation": format!("10.1.{high}.{low}"), "addresses": addresses})
    };
    locations.into_iter().map(item).collect()
}

fn policy() -> Policy {
    let config = json!({
        "tenantId": "t", "aadClientId": "c", "aadClientSecret": "s",
        "subscriptionId": "sub", "resourceGroup": "rg", "location": "eastus",
        "vnetName": "vnet", "subnetName": "nodes", "securityGroupName": "nsg",
    });
    let (text, environment) = (config.to_string(), BTreeMap::new());
    let sources = Sources { text: &text, cluster: "kubernetes", environment: &environment };
    observe::config::read(&sources).unwrap().policy
}

#[test]
fn an_address_takes_at_most_100_bytes() {
    let (mut world, mut listing, mut interner) =
        (Kubernetes::default(), Listing::default(), Interner::default());
    let classes = BTreeSet::new();
    for n in 0..SERVICES {
        let fact = kubernetes::service_from_value(&service(n), &classes, &mut interner).unwrap();
        apply(&mut world, &mut listing, KubernetesFact::Service(Box::new(fact)));
    }
    for n in 0..NODES {
        let fact = kubernetes::node_from_value(&node(n), &Group::new("rg"), &mut interner).unwrap();
        apply(&mut world, &mut listing, KubernetesFact::Node(fact));
    }
    let addresses = (SERVICES * PODS_EACH) as usize;

    let region = Region::new(ALLOCATOR);
    for n in 0..SERVICES {
        let fact = kubernetes::slice_from_value(&slice(n), &mut interner).unwrap();
        apply(&mut world, &mut listing, KubernetesFact::Slice(fact));
    }
    let wanted = held(&region) / addresses;

    let (mut azure, policy) = (Azure::default(), policy());
    let region = Region::new(ALLOCATOR);
    let mut gathering = Gathering::default();
    let items = table();
    for page in items.chunks(100) {
        gathering.take(&azure, &policy, &Need::GatewayLocations, page);
    }
    gathering.finish(&mut azure, &Need::GatewayLocations);
    drop(items);
    let seen = held(&region) / addresses;

    println!("bytes an address: {wanted} in EndpointSlices, {seen} in the gateway's table");
    assert!(wanted + seen <= 100, "{wanted} + {seen}");
    // Nothing of it was left out.
    let first = ServiceName::new("default", "web-00000-x7k2p");
    assert_eq!(world.slices.len(), SERVICES as usize);
    assert_eq!(world.slices[&first].endpoints.len(), PODS_EACH as usize);
    let table = azure.gateway_locations.known().unwrap();
    assert_eq!(table.values().map(|at| at.len()).sum::<usize>(), addresses);
}
