//! Nodes, as far as load balancers care.

use crate::asks::Family;
use crate::estate::{Estate, items, last, same, text};
use crate::site::Site;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Present with any value, it keeps a node out.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The cluster autoscaler is about to delete the node.
const LEAVING: &str = "ToBeDeletedByClusterAutoscaler";
/// Present with any value, it drains a node.
const PLANNED: &str = "ballast.dev/drain";
const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: &'a Value,
    /// The first internal address of each family.
    pub(crate) addresses: BTreeMap<Family, IpAddr>,
    /// Id of its machine, lower case.
    pub(crate) machine: Option<String>,
    /// It has no `providerID` yet: its machine is the one that bears its name.
    pub(crate) unnamed: bool,
    /// Its scale set or availability set, lower case.
    pub(crate) set: Option<String>,
    /// It is in no pool: a label says so, or it is not of this cluster's group.
    pub(crate) excluded: bool,
    pub(crate) control_plane: bool,
    /// It is to go: new connections end, established ones live on.
    pub(crate) leaving: bool,
    /// The operator asks for that with Ballast's label, which kube-proxy does not know.
    pub(crate) planned: bool,
}

impl<'a> Node<'a> {
    pub(crate) fn read(object: &'a Value, site: &Site, estate: &Estate<'_>) -> Self {
        let meta = &object["metadata"];
        let labels = &meta["labels"];
        let mut addresses = BTreeMap::new();
        for address in items(&object["status"]["addresses"]) {
            if text(&address["type"]) == "InternalIP"
                && let Ok(ip) = text(&address["address"]).parse::<IpAddr>()
            {
                addresses.entry(Family::of(&ip)).or_insert(ip);
            }
        }
        let provider = text(&object["spec"]["providerID"]).to_lowercase();
        let machine = provider.strip_prefix("azure://").map(str::to_owned);
        let group = &labels["kubernetes.azure.com/resource-group"];
        let unmanaged = same(text(&labels["kubernetes.azure.com/managed"]), "false");
        let taints = &object["spec"]["taints"];
        Self {
            name: text(&meta["name"]),
            labels,
            addresses,
            set: machine.as_deref().and_then(|machine| set_of(machine, estate)),
            unnamed: machine.is_none(),
            machine: machine.or_else(|| called(text(&meta["name"]), estate)),
            excluded: !labels[EXCLUDED].is_null()
                || unmanaged
                || group.as_str().is_some_and(|name| !name.is_empty() && !same(name, &site.group)),
            control_plane: CONTROL_PLANE.iter().any(|label| !labels[*label].is_null())
                || labels["kubernetes.io/role"] == "master",
            planned: !labels[PLANNED].is_null(),
            leaving: !meta["deletionTimestamp"].is_null()
                || !labels[PLANNED].is_null()
                || items(taints).any(|taint| taint["key"] == LEAVING),
        }
    }
}

/// The machine whose computer name is that of a node.
fn called(name: &str, estate: &Estate<'_>) -> Option<String> {
    let is_it =
        |machine: &Value| same(text(&machine["properties"]["osProfile"]["computerName"]), name);
    estate.machines().find(|(_, machine)| is_it(machine)).map(|(id, _)| id.to_owned())
}

/// The set of a machine: part of its id, or what the machine says.
fn set_of(machine: &str, estate: &Estate<'_>) -> Option<String> {
    if let Some((_, rest)) = machine.split_once("/virtualmachinescalesets/") {
        return rest.split('/').next().map(str::to_owned);
    }
    let machine = &estate.get(machine)?["properties"];
    let sets = ["virtualMachineScaleSet", "availabilitySet"];
    let mut ids = sets.iter().filter_map(|kind| machine[*kind]["id"].as_str());
    ids.next().map(|id| last(id).to_lowercase())
}
