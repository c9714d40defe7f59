//! Somebody in the portal who deletes what of ours is in use, and edits what load balancers are
//! made of beside themselves. Azure refuses to delete what others refer to, so that goes first.

use super::{Company, neighbour};
use crate::check::form::parts;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::objects::{OTHER_CLUSTERS, is_theirs};
use crate::scene::{self, Layout};
use crate::stage::Stage;
use crate::tally::count;
use azure_emulator::Request;
use serde_json::{Value, json};

const BALANCERS: &str = "Microsoft.Network/loadBalancers";
const IPS: &str = "Microsoft.Network/publicIPAddresses";
const NATS: &str = "Microsoft.Network/natGateways";
const MACHINES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// What was written on a public IP and is taken off again, since nobody repairs it: a property of
/// Azure's contract that we do not know.
const NOTE: &str = "deleteOption";

/// Ids of our resources of a kind.
fn ours(stage: &Stage, kind: &str) -> Vec<String> {
    let all = stage.azure.resources_of(kind);
    let ids = all.iter().filter_map(|r| r["id"].as_str().map(str::to_owned));
    ids.filter(|id| !is_theirs(last(id))).collect()
}

/// Somebody reads a resource, changes it and writes it back.
fn edit(stage: &mut Stage, id: &str, change: impl FnOnce(&mut Value)) -> bool {
    // What is gone by now is not made again.
    let read = stage.azure.handle(Request::new("GET", id), stage.now_ms);
    matches!(read.status, 200..300) && neighbour::edit(stage, id, change)
}

fn last(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or("")
}

fn is_same(reference: &Value, id: &str) -> bool {
    reference["id"].as_str().is_some_and(|other| other.eq_ignore_ascii_case(id))
}

/// Somebody deletes a resource. The status and code that Azure answers with.
pub(super) fn delete(stage: &mut Stage, id: &str) -> (u16, String) {
    let answer = stage.azure.handle(Request::new("DELETE", id), stage.now_ms);
    stage.azure.clear_calls();
    let code = answer.code().unwrap_or("").to_owned();
    let status = answer.status;
    stage.trace.say(stage.now_ms, || format!("somebody deletes {} -> {status} {code}", last(id)));
    if matches!(status, 200..300) {
        stage.note_deleted(id);
    }
    (status, code)
}

/// Somebody changes a table of the Service Gateway. True when Azure took it.
fn act(stage: &mut Stage, verb: &str, body: Value) -> bool {
    let text = body.to_string();
    let request = Request::new("POST", &format!("{}/{verb}", scene::gateway())).with_body(body);
    let answer = stage.azure.handle(request, stage.now_ms);
    stage.azure.clear_calls();
    let (status, code) = (answer.status, answer.code().unwrap_or("").to_owned());
    stage.trace.say(stage.now_ms, || format!("somebody: {verb} {text} -> {status} {code}"));
    matches!(status, 200..300)
}

/// One row of the table of addresses: the address of a node, of a Pod below it, and its services.
type Row = (String, String, Vec<String>);

fn rows(stage: &Stage) -> Vec<Row> {
    let tables = stage.azure.gateway(&scene::gateway()).unwrap_or_default();
    let mut rows = Vec::new();
    for (node, held) in tables["locations"].as_object().into_iter().flatten() {
        for (address, names) in held.as_object().into_iter().flatten() {
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            rows.push((node.clone(), address.clone(), names.map(str::to_owned).collect()));
        }
    }
    rows
}

/// Writes rows, each by itself. No services: the row goes.
fn write_rows(stage: &mut Stage, rows: &[Row]) -> bool {
    rows.iter().all(|(node, address, names)| {
        let row = json!({"addressLocation": node, "addressUpdateAction": "PartialUpdate",
            "addresses": [{"address": address, "services": names}]});
        let body = json!({"action": "PartialUpdate", "addressLocations": [row]});
        act(stage, "updateAddressLocations", body)
    })
}

/// Takes a service out of the Service Gateway: first its addresses, then itself.
fn deregister(stage: &mut Stage, name: &str) -> bool {
    let held = rows(stage).into_iter().filter(|(_, _, names)| names.iter().any(|n| n == name));
    let freed: Vec<Row> = held
        .map(|(node, address, names)| {
            (node, address, names.into_iter().filter(|n| n != name).collect())
        })
        .collect();
    let body = json!({"action": "PartialUpdate", "serviceRequests": [
        {"isDelete": true, "service": {"name": name}}]});
    write_rows(stage, &freed) && act(stage, "updateServices", body)
}

/// Services of ours in the Service Gateway, with what stands about them.
fn registered(stage: &Stage) -> Vec<(String, String)> {
    let tables = stage.azure.gateway(&scene::gateway()).unwrap_or_default();
    let all = tables["services"].as_object().into_iter().flatten();
    let all = all.filter(|(name, _)| !is_theirs(name));
    all.map(|(name, service)| (name.clone(), service.to_string().to_lowercase())).collect()
}

/// Takes whatever refers to a resource out of the Service Gateway.
fn deregister_users(stage: &mut Stage, id: &str) -> bool {
    let id = id.to_lowercase();
    let users = registered(stage).into_iter().filter(|(_, text)| text.contains(&id));
    let users: Vec<String> = users.map(|(name, _)| name).collect();
    users.iter().all(|name| deregister(stage, name))
}

impl Company {
    pub(super) fn vandal(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Vandal.name());
        let choice = random.below(10);
        match (self.scene.layout, choice) {
            (_, 0 | 1) => self.delete_ip(random, stage),
            (_, 2 | 3) => edit_ip(random, stage),
            (Layout::Containers, 4) => {
                let rows: Vec<Row> =
                    rows(stage).into_iter().filter(|_| random.permille(600)).collect();
                let gone = rows.into_iter().map(|(node, address, _)| (node, address, Vec::new()));
                let gone: Vec<Row> = gone.collect();
                write_rows(stage, &gone);
                "drop addresses of the Service Gateway"
            }
            (Layout::Containers, 5) => add_row(random, stage),
            (Layout::Containers, 6) => {
                let mut all = registered(stage);
                let bare =
                    |text: &str| text.contains("\"outbound\"") && !text.contains("/natgateways/");
                all.retain(|(_, text)| !bare(text));
                if let Some((name, _)) = random.choose(&all) {
                    deregister(stage, name);
                }
                "deregister a service"
            }
            (Layout::Containers, 7) => delete_nat(random, stage),
            (Layout::Containers, _) => delete_balancer(random, stage),
            (Layout::Nics | Layout::PerSet, 4 | 5) => leave_group(random, stage),
            (_, 4..=7) => {
                edit(stage, &self.scene.security_group(), |group| {
                    let rules = &mut group["properties"]["securityRules"];
                    let mut kept = rules.as_array().cloned().unwrap_or_default();
                    kept.retain(|rule| {
                        let name = rule["name"].as_str().unwrap_or("");
                        is_theirs(name) || name == OTHER_CLUSTERS
                    });
                    *rules = Value::Array(kept);
                });
                "drop all security rules of ours"
            }
            _ => {
                let all = ours(stage, BALANCERS);
                if let Some(id) = random.choose(&all) {
                    let kept = |name: &str| is_theirs(name);
                    edit(stage, &id.clone(), |balancer| {
                        for collection in ["loadBalancingRules", "frontendIPConfigurations"] {
                            keep(balancer, collection, |part| {
                                kept(part["name"].as_str().unwrap_or(""))
                            });
                        }
                    });
                }
                "drop all frontends of ours"
            }
        }
    }

    /// A public IP of ours goes, with what stands on it.
    pub(super) fn delete_ip(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        let all = ours(stage, IPS);
        let Some(id) = random.choose(&all) else { return "find no public IP" };
        let (_, code) = delete(stage, id);
        if code != "PublicIPAddressCannotBeDeleted" {
            return "delete a public IP";
        }
        for balancer in ours(stage, BALANCERS) {
            let Some(standing) = stage.azure.resource(&balancer) else { continue };
            let frontends = parts(&standing, "frontendIPConfigurations");
            let on = frontends
                .iter()
                .find(|(_, frontend)| is_same(&frontend["properties"]["publicIPAddress"], id));
            let Some((frontend, _)) = on else { continue };
            let led = format!("{balancer}/frontendIPConfigurations/{frontend}");
            edit(stage, &balancer, |balancer| {
                keep(balancer, "loadBalancingRules", |rule| {
                    !is_same(&rule["properties"]["frontendIPConfiguration"], &led)
                });
                keep(balancer, "frontendIPConfigurations", |part| part["name"] != json!(frontend));
            });
        }
        // One that a NAT gateway has stays refused: docs/dev/simulation.md.
        let (status, _) = delete(stage, id);
        match status {
            200..300 => "delete a public IP that was in use",
            _ => "fail to delete a public IP that is in use",
        }
    }

    /// Takes off what nobody repairs.
    pub fn take_notes_off(&self, stage: &mut Stage) {
        for id in ours(stage, IPS) {
            let noted = |ip: &Value| !ip["properties"][NOTE].is_null();
            if stage.azure.resource(&id).is_some_and(|ip| noted(&ip)) {
                edit(stage, &id, |ip| {
                    if let Some(inside) = ip["properties"].as_object_mut() {
                        inside.retain(|key, _| key != NOTE && key != "idleTimeoutInMinutes");
                    }
                });
            }
        }
    }
}

/// Keeps of a collection what passes.
fn keep(resource: &mut Value, collection: &str, passes: impl Fn(&Value) -> bool) {
    if let Some(items) = resource["properties"][collection].as_array_mut() {
        items.retain(passes);
    }
}

fn edit_ip(random: &mut Random, stage: &mut Stage) -> &'static str {
    let all = ours(stage, IPS);
    let Some(id) = random.choose(&all) else { return "find no public IP" };
    match random.below(3) {
        0 => {
            edit(stage, id, |ip| ip["tags"]["owner"] = json!("vandal"));
            "tag a public IP of ours"
        }
        1 => {
            edit(stage, id, |ip| {
                ip["properties"]["idleTimeoutInMinutes"] = json!(17);
                ip["properties"][NOTE] = json!("Detach");
            });
            "set the idle timeout of a public IP of ours"
        }
        _ => {
            let label = if random.permille(500) { json!("vandal") } else { Value::Null };
            edit(stage, id, |ip| {
                ip["properties"]["dnsSettings"] = match &label {
                    Value::Null => Value::Null,
                    label => json!({"domainNameLabel": label}),
                };
            });
            "change the DNS label of a public IP of ours"
        }
    }
}

/// A row that nobody asked for, below a node or below what is none.
fn add_row(random: &mut Random, stage: &mut Stage) -> &'static str {
    let all = registered(stage);
    if let Some((name, _)) = random.choose(&all) {
        let node = if random.permille(500) { "10.224.0.4" } else { "10.224.9.9" };
        let address = format!("10.244.0.{}", 10 + random.below(14));
        write_rows(stage, &[(node.to_owned(), address, vec![name.clone()])]);
    }
    "add an address to the Service Gateway"
}

fn delete_nat(random: &mut Random, stage: &mut Stage) -> &'static str {
    // One that is on its way out has no other mark left: docs/dev/simulation.md.
    let registered = registered(stage);
    let mut all = ours(stage, NATS);
    all.retain(|id| registered.iter().any(|(_, text)| text.contains(&id.to_lowercase())));
    let Some(id) = random.choose(&all) else { return "find no NAT gateway" };
    if !deregister_users(stage, id) {
        return "fail to deregister a NAT gateway";
    }
    delete(stage, id);
    "delete a NAT gateway"
}

fn delete_balancer(random: &mut Random, stage: &mut Stage) -> &'static str {
    let all = ours(stage, BALANCERS);
    let Some(id) = random.choose(&all) else { return "find no load balancer" };
    if matches!(delete(stage, id).0, 200..300) {
        return "delete a container load balancer";
    }
    deregister_users(stage, id);
    delete(stage, id);
    "delete a container load balancer that was registered"
}

/// A machine's NIC leaves the security group.
fn leave_group(random: &mut Random, stage: &mut Stage) -> &'static str {
    let machines = stage.azure.resources_of(MACHINES);
    let ids: Vec<&str> = machines.iter().filter_map(|m| m["id"].as_str()).collect();
    if let Some(id) = random.choose(&ids) {
        edit(stage, id, |machine| {
            let nics = machine.pointer_mut(
                "/properties/networkProfileConfiguration/networkInterfaceConfigurations",
            );
            for nic in nics.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(inside) = nic["properties"].as_object_mut() {
                    inside.shift_remove("networkSecurityGroup");
                }
            }
        });
    }
    "take a machine off the security group"
}
