//! Scale sets, their machines, and NICs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::elements::{check_names, strip_elements};
use crate::json::{
    bare_reference, drop_keys, fill, list, list_mut, named, number, object, properties, references,
    same, text,
};
use crate::message::{Answer, Checked, Refusal, Request, refusal, refuse};
use crate::operations::Change;
use crate::path::{Route, kind, last, parent};
use crate::store::Entry;
use crate::uses::nic_configurations;

const COMPUTE_NIC: &str =
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces";

/// The name of an instance's host: prefix and six digits in base 36, as scale sets give it.
pub fn computer_name(prefix: &str, instance: u32) -> String {
    let mut rest = instance;
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize];
        rest /= 36;
    }
    format!("{prefix}{}", String::from_utf8_lossy(&digits))
}

pub(crate) fn prepare_scale_set(entry: &mut Entry) {
    let inside = properties(&mut entry.value);
    fill(inside, "orchestrationMode", "Uniform");
}

pub(crate) fn prepare_nic(entry: &mut Entry, old: Option<&Entry>) -> Checked {
    check_names(entry, "ipConfigurations")?;
    strip_elements(entry, "ipConfigurations", &[]);
    let machine = old.map(|old| old.value["properties"]["virtualMachine"].clone());
    let inside = properties(&mut entry.value);
    drop_keys(inside, &["macAddress", "virtualMachine"]);
    if let Some(machine) = machine.filter(Value::is_object) {
        inside.insert("virtualMachine".to_owned(), machine);
    }
    bare_reference(inside, "networkSecurityGroup");
    for configuration in list_mut(&mut entry.value, "ipConfigurations").into_iter().flatten() {
        let inside = properties(configuration);
        for key in ["subnet", "publicIPAddress", "loadBalancerBackendAddressPools"] {
            bare_reference(inside, key);
        }
        fill(inside, "privateIPAllocationMethod", "Dynamic");
    }
    Ok(())
}

impl Azure {
    /// Refuses memberships in pools that do not go together.
    pub(crate) fn check_membership(&self, entry: &Entry) -> Checked {
        let nics: Vec<&Value> = match entry.kind.as_str() {
            kind::NIC => vec![&entry.value],
            _ => nic_configurations(entry).iter().collect(),
        };
        for nic in nics {
            let mut of_type: BTreeMap<&str, String> = BTreeMap::new();
            let mut skus: BTreeSet<String> = BTreeSet::new();
            let configurations = list(nic, &["properties", "ipConfigurations"]);
            let pools = configurations.iter().flat_map(|configuration| {
                references(&configuration["properties"]["loadBalancerBackendAddressPools"])
            });
            for pool in pools {
                let Some((balancer, Some(element))) = self.store.holder(pool) else { continue };
                self.check_pool_takes_nics(pool, element, entry)?;
                skus.insert(text(&balancer.value, &["sku", "name"]).to_lowercase());
                if skus.len() > 1 {
                    let message = format!(
                        "The network interface {} of {} cannot be in load balancers of different \
                         SKUs.",
                        text(nic, &["name"]),
                        entry.id
                    );
                    let code = "DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed";
                    return refuse(code, message);
                }
                let Some(sort) = sort_of(balancer) else { continue };
                let other = of_type.insert(sort, balancer.id.clone());
                if let Some(other) = other.filter(|other| !same(other, &balancer.id)) {
                    let message = format!(
                        "The network interface {} of {} uses multiple load balancers of the same \
                         type ({sort}): {other}, {}.",
                        text(nic, &["name"]),
                        entry.id,
                        balancer.id
                    );
                    return refuse("NetworkInterfaceUsesMultipleLoadBalancersOfSameType", message);
                }
            }
        }
        Ok(())
    }

    fn check_pool_takes_nics(&self, pool: &str, element: &Value, entry: &Entry) -> Checked {
        if list(element, &["properties", "loadBalancerBackendAddresses"]).is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} cannot join backend pool {pool}: the pool is made of IP addresses.",
            entry.id
        );
        refuse("BackendAddressPoolCannotMixNicsAndAddresses", message)
    }

    /// The members of a pool of NICs: the id of the IP configuration and its address.
    pub(crate) fn members(&self, pool: &str) -> Vec<(String, String)> {
        let users = self.store.users(pool).filter(|user| {
            let owner = self.store.get(&user.owner);
            owner.is_some_and(|owner| matches!(owner.kind.as_str(), kind::NIC | kind::VMSS_VM))
        });
        users
            .filter_map(|user| {
                let (_, element) = self.store.holder(&user.element)?;
                let address = text(element?, &["properties", "privateIPAddress"]).to_owned();
                (!address.is_empty()).then(|| (user.element.clone(), address))
            })
            .collect()
    }

    /// The virtual network of an IP configuration.
    pub(crate) fn network_of(&self, configuration: &str) -> Option<String> {
        let (_, element) = self.store.holder(configuration)?;
        let subnet = text(element?, &["properties", "subnet", "id"]);
        parent(subnet).map(str::to_owned)
    }

    /// Makes or removes machines of a uniform scale set until there are as many as it asks for.
    pub(crate) fn size_scale_set(&mut self, key: &str) {
        let Some(set) = self.store.get(key).cloned() else { return };
        let mode = text(&set.value, &["properties", "orchestrationMode"]);
        let Some(capacity) = number(&set.value, &["sku", "capacity"]) else { return };
        if !same(mode, "Uniform") {
            return;
        }
        let prefix = format!("{key}/virtualmachines/");
        let instances: BTreeSet<u32> = self
            .store
            .keys_of(kind::VMSS_VM, &prefix)
            .filter_map(|key| last(key).parse().ok())
            .collect();
        let have = instances.len();
        let want = usize::try_from(capacity).unwrap_or(0);
        let next = instances.last().map_or(0, |last| last + 1);
        for instance in (next..).take(want.saturating_sub(have)) {
            self.make_instance(&set, instance);
        }
        for instance in instances.iter().rev().take(have.saturating_sub(want)) {
            let below = format!("{prefix}{instance}");
            if let Some((_, touched)) = self.store.remove(&below) {
                self.touch(&touched);
            }
            self.store.keys_below(&below).iter().for_each(|nic| self.remove_now(nic));
        }
        let policy = text(&set.value, &["properties", "upgradePolicy", "mode"]);
        if same(policy, "Automatic") {
            self.upgrade(key, None);
        } else {
            self.mark_models(key);
        }
    }

    fn make_instance(&mut self, set: &Entry, instance: u32) {
        let name = text(&set.value, &["name"]);
        let id = format!("{}/virtualMachines/{instance}", set.id);
        let profile = &set.value["properties"]["virtualMachineProfile"];
        let prefix = text(profile, &["osProfile", "computerNamePrefix"]);
        let prefix = if prefix.is_empty() { name } else { prefix };
        let nics = &profile["networkProfile"]["networkInterfaceConfigurations"];
        let ids: Vec<Value> = nics
            .as_array()
            .into_iter()
            .flatten()
            .map(|nic| {
                json!({"id": format!("{id}/networkInterfaces/{}", text(nic, &["name"])),
                    "properties": {"primary": nic["properties"]["primary"]}})
            })
            .collect();
        let zones = list(&set.value, &["zones"]);
        let zone = zones.get(instance as usize % zones.len().max(1));
        let mut value = json!({
            "id": id, "name": format!("{name}_{instance}"), "instanceId": instance.to_string(),
            "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
            "location": set.value["location"], "etag": self.guids.etag(),
            "sku": {"name": set.value["sku"]["name"]},
            "properties": {
                "latestModelApplied": true, "vmId": self.guids.guid(),
                "provisioningState": "Succeeded",
                "osProfile": {"computerName": computer_name(prefix, instance)},
                "instanceView": {"statuses": [{"code": "PowerState/running"}]},
                "networkProfile": {"networkInterfaces": ids},
                "networkProfileConfiguration": {"networkInterfaceConfigurations": nics},
            },
        });
        if let Some(zone) = zone {
            value["zones"] = json!([zone]);
        }
        let created_ms = self.now_ms;
        let key = id.to_lowercase();
        let kind = kind::VMSS_VM.to_owned();
        let entry = Entry { id, kind, value, created_ms, operation: None };
        let touched = self.store.insert(key.clone(), entry);
        self.touch(&touched);
        self.describe_nics(&key);
    }

    /// Brings a machine's NICs in line with what the machine says of them.
    pub(crate) fn describe_nics(&mut self, key: &str) {
        let Some(machine) = self.store.get(key).cloned() else { return };
        let wanted = nic_configurations(&machine);
        let prefix = format!("{key}/networkinterfaces/");
        let standing: Vec<String> = self.store.keys_of(kind::VMSS_NIC, &prefix).cloned().collect();
        for nic in
            standing.iter().filter(|nic| !wanted.is_empty() && named(wanted, last(nic)).is_none())
        {
            self.remove_now(nic);
        }
        for configuration in wanted {
            let id = format!("{}/networkInterfaces/{}", machine.id, text(configuration, &["name"]));
            self.describe_nic(&machine, &id, configuration);
        }
    }

    fn describe_nic(&mut self, machine: &Entry, id: &str, configuration: &Value) {
        let key = id.to_lowercase();
        let old = self.store.get(&key).cloned();
        let mut value = old.as_ref().map_or_else(
            || {
                json!({"id": id, "name": last(id), "type": COMPUTE_NIC,
                    "location": machine.value["location"], "etag": self.guids.etag()})
            },
            |old| old.value.clone(),
        );
        let inside = properties(&mut value);
        for (name, part) in configuration["properties"].as_object().into_iter().flatten() {
            inside.insert(name.clone(), part.clone());
        }
        inside.insert("provisioningState".to_owned(), json!("Succeeded"));
        inside.insert("virtualMachine".to_owned(), json!({"id": machine.id}));
        let created_ms = self.now_ms;
        let kind = kind::VMSS_NIC.to_owned();
        let mut entry = Entry { id: id.to_owned(), kind, value, created_ms, operation: None };
        // A full subnet leaves the NIC without an address; the machine is there all the same.
        let _ = self.assign_private(&key, &mut entry, old.as_ref(), "ipConfigurations");
        let touched = self.store.insert(key, entry);
        self.touch(&touched);
    }

    /// Says of each machine whether its NICs are those of the scale set's model.
    fn mark_models(&mut self, set: &str) {
        let Some(entry) = self.store.get(set) else { return };
        let model = json!(nic_configurations(entry));
        let prefix = format!("{set}/virtualmachines/");
        let keys: Vec<String> = self.store.keys_of(kind::VMSS_VM, &prefix).cloned().collect();
        for key in keys {
            let Some(machine) = self.store.get_mut(&key) else { continue };
            let own = json!(nic_configurations(machine));
            let latest = own == model;
            properties(&mut machine.value).insert("latestModelApplied".to_owned(), json!(latest));
        }
    }

    /// Gives machines the NICs of the model; all of them, or those named.
    fn upgrade(&mut self, set: &str, instances: Option<&[String]>) {
        let Some(entry) = self.store.get(set) else { return };
        let model = json!(nic_configurations(entry));
        let prefix = format!("{set}/virtualmachines/");
        let keys: Vec<String> = self.store.keys_of(kind::VMSS_VM, &prefix).cloned().collect();
        for key in keys {
            let chosen = instances
                .is_none_or(|names| names.iter().any(|name| name == "*" || name == last(&key)));
            let Some(mut machine) = self.store.get(&key).cloned().filter(|_| chosen) else {
                continue;
            };
            let inside = properties(&mut machine.value);
            inside.insert(
                "networkProfileConfiguration".to_owned(),
                json!({ "networkInterfaceConfigurations": model }),
            );
            inside.insert("latestModelApplied".to_owned(), json!(true));
            machine.value["etag"] = json!(self.guids.etag());
            let touched = self.store.insert(key.clone(), machine);
            self.touch(&touched);
            self.describe_nics(&key);
        }
    }

    /// A machine less in its scale set.
    pub(crate) fn count_down(&mut self, machine: &str) {
        let set = parent(machine).and_then(|key| self.store.get_mut(key));
        if let Some(set) = set
            && let Some(capacity) = number(&set.value, &["sku", "capacity"])
        {
            let sku = object(&mut set.value)["sku"].as_object_mut();
            if let Some(sku) = sku {
                sku.insert("capacity".to_owned(), json!((capacity - 1).max(0)));
            }
        }
    }

    /// POST actions of scale sets and machines.
    pub(crate) fn act_on_machines(
        &mut self,
        route: &Route,
        owner: &str,
        verb: &str,
        request: &Request,
    ) -> Checked<Answer> {
        let body = request.body.clone().unwrap_or(Value::Null);
        let ids = list(&body, &["instanceIds"]).iter().filter_map(|id| id.as_str());
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        let kind = self.store.get(owner).map(|entry| entry.kind.clone()).unwrap_or_default();
        match (kind.as_str(), verb) {
            (kind::VMSS, "manualupgrade") => {
                self.check_instances(owner, &ids)?;
                self.upgrade(owner, Some(&ids));
            }
            (kind::VMSS, "delete") => {
                self.check_instances(owner, &ids)?;
                for id in ids {
                    self.remove_now(&format!("{owner}/virtualmachines/{id}"));
                }
            }
            (kind::VMSS_VM | kind::VM, "start" | "restart") => self.set_power(owner, "running"),
            (kind::VMSS_VM | kind::VM, "deallocate") => self.set_power(owner, "deallocated"),
            (kind::VMSS_VM | kind::VM, "poweroff") => self.set_power(owner, "stopped"),
            _ => return Err(crate::azure::not_allowed("POST", route)),
        }
        if self.options.lro_ms == 0 {
            return Ok(Answer::new(200, None));
        }
        let headers = self.start(owner, Change::Action, None);
        Ok(Answer::new(202, None).with_headers(headers))
    }

    fn check_instances(&self, set: &str, ids: &[String]) -> Checked {
        let there = |id: &String| {
            id == "*" || self.store.get(&format!("{set}/virtualmachines/{id}")).is_some()
        };
        match ids.iter().find(|id| !there(id)) {
            None => Ok(()),
            Some(id) => Err(not_an_instance(id)),
        }
    }

    fn set_power(&mut self, key: &str, state: &str) {
        if let Some(entry) = self.store.get_mut(key) {
            let view = json!({"statuses": [{"code": "ProvisioningState/succeeded"},
                {"code": format!("PowerState/{state}")}]});
            properties(&mut entry.value).insert("instanceView".to_owned(), view);
        }
    }

    /// `GET …/instanceView` of a machine.
    pub(crate) fn instance_view(&self, route: &Route) -> Option<Answer> {
        let (machine, _) =
            route.path.rsplit_once('/').filter(|(_, verb)| same(verb, "instanceView"))?;
        let view = self.store.find(machine)?.value["properties"]["instanceView"].clone();
        Some(Answer::new(200, Some(view)))
    }
}

/// What Azure says of an instance that is gone.
pub(crate) fn not_an_instance(id: &str) -> Refusal {
    let message = format!(
        "The provided instanceId {id} is not an active Virtual Machine Scale Set VM instanceId."
    );
    refusal(400, "InvalidParameter", message)
}

/// Whether a load balancer is public or internal; unknown without frontends.
fn sort_of(balancer: &Entry) -> Option<&'static str> {
    let frontend = list(&balancer.value, &["properties", "frontendIPConfigurations"]).first()?;
    let subnet = text(frontend, &["properties", "subnet", "id"]);
    Some(if subnet.is_empty() { "public" } else { "internal" })
}
