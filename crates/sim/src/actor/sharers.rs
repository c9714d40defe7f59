//! Three Services of one namespace on one public IP of ours: its tag names all of them, whoever
//! comes and goes.

use super::{Company, neighbour};
use crate::check::form::{parts, told};
use crate::random::Random;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use kube_emulator::ObjectRef;
use serde_json::{Value, json};

/// How many there are.
const SERVICES: u64 = 3;
const NAMESPACE: &str = "default";
/// Who wants the port of one of them.
const RIVAL: &str = "rival";
const RIVALS_NODE_PORT: u64 = 32_690;
/// The inbound NAT rule of another client on their frontend, and its port.
const NAT_RULE: &str = "theirs-nat";
const NAT_PORT: u64 = 22;
/// In how many contests of a thousand the rival wants the port of that rule.
const TRANSLATED: u64 = 400;
const BALANCERS: &str = "Microsoft.Network/loadBalancers";
const ADDRESS: &str = "service.beta.kubernetes.io/azure-load-balancer-ipv4";

fn place(number: u64) -> (String, String) {
    (NAMESPACE.to_owned(), format!("sharer-{number}"))
}

/// One of them, at an address that others have or, without one, at one of its own.
fn service(number: u64, address: Option<&str>) -> Value {
    let mut service = objects::service(NAMESPACE, 700 + number);
    service["metadata"]["name"] = json!(place(number).1);
    if let Some(address) = address {
        service["metadata"]["annotations"] = json!({ ADDRESS: address });
    }
    service
}

/// The address that those of them have that are there.
fn address(stage: &Stage) -> Option<String> {
    let all = (0..SERVICES).filter_map(|number| {
        let (namespace, name) = place(number);
        stage.kubernetes.get(ObjectRef::new("services", &namespace, &name)).ok()
    });
    let addresses: Vec<String> =
        all.flat_map(|service| told(&service).map(str::to_owned).collect::<Vec<_>>()).collect();
    addresses.into_iter().find(|address| !address.contains(':'))
}

/// A Service that comes to their address with the port of another of them. Its node port is its
/// own: the API server gives none twice.
fn rival(address: &str) -> Value {
    let mut service = service(1, Some(address));
    service["metadata"]["name"] = json!(RIVAL);
    service["spec"]["ports"][0]["nodePort"] = json!(RIVALS_NODE_PORT);
    service
}

/// Another client adds an inbound NAT rule to the frontend with this address. False where Azure
/// refuses it now.
fn translate(stage: &mut Stage, address: &str) -> bool {
    let mut place = None;
    for balancer in stage.azure.resources_of(BALANCERS) {
        for frontend in parts(&balancer, "frontendIPConfigurations").into_values() {
            let ip = frontend["properties"]["publicIPAddress"]["id"].as_str();
            let ip = ip.and_then(|id| stage.azure.shown_by_id(id));
            if ip.is_some_and(|ip| ip["properties"]["ipAddress"] == address) {
                let id = balancer["id"].as_str().unwrap_or("").to_owned();
                place = Some((id, frontend["id"].clone()));
            }
        }
    }
    let Some((balancer, frontend)) = place else { return false };
    let rule = json!({"name": NAT_RULE, "properties": {"protocol": "Tcp",
        "frontendPort": NAT_PORT, "backendPort": NAT_PORT,
        "frontendIPConfiguration": {"id": frontend}}});
    neighbour::edit(stage, &balancer, |balancer| {
        let rules = &mut balancer["properties"]["inboundNatRules"];
        let mut all = rules.as_array().cloned().unwrap_or_default();
        all.push(rule);
        *rules = Value::Array(all);
    })
}

/// The other client deletes the rule. A deletion that Azure refuses now is tried again later.
fn take_back(stage: &mut Stage) {
    let all = stage.azure.resources_of(BALANCERS);
    let with = all.iter().filter(|b| parts(b, "inboundNatRules").contains_key(NAT_RULE));
    let ids: Vec<String> = with.filter_map(|b| b["id"].as_str().map(str::to_owned)).collect();
    for id in ids {
        for _ in 0..30 {
            let done = neighbour::edit(stage, &id, |balancer| {
                if let Some(rules) = balancer["properties"]["inboundNatRules"].as_array_mut() {
                    rules.retain(|rule| rule["name"] != NAT_RULE);
                }
            });
            if done {
                break;
            }
            stage.advance(stage.now_ms + 10_000);
        }
    }
}

impl Company {
    /// Who wants a port that another has on the frontend which both share comes, or goes: who has
    /// it keeps it, and no other Service on the load balancer notices.
    pub(crate) fn contest(&mut self, random: &mut Random, stage: &mut Stage) {
        let stays = random.permille(700);
        let place = (NAMESPACE.to_owned(), RIVAL.to_owned());
        let Some(address) = address(stage).filter(|_| self.can_share()) else { return };
        if self.services.contains_key(&place) {
            if !stays {
                self.contest_no_more(stage);
            }
            return;
        }
        let translated = random.fork("inbound NAT").permille(TRANSLATED);
        let mut rival = rival(&address);
        if translated && translate(stage, &address) {
            rival["spec"]["ports"][0]["port"] = json!(NAT_PORT);
        }
        self.services.insert(place, rival);
        self.tend(stage);
    }

    /// It goes for good.
    pub(crate) fn contest_no_more(&mut self, stage: &mut Stage) {
        let place = (NAMESPACE.to_owned(), RIVAL.to_owned());
        if self.services.remove(&place).is_some() {
            self.delete(stage, &place);
        }
        take_back(stage);
    }

    /// Whether all load balancers are one: an address chooses among several.
    fn can_share(&self) -> bool {
        matches!(self.scene.layout, Layout::Single | Layout::Nics)
    }

    /// The first of them comes.
    pub(crate) fn share(&mut self, stage: &mut Stage) {
        if self.can_share() {
            self.services.insert(place(0), service(0, None));
            self.tend(stage);
        }
    }

    /// The others come; once they are there one of them goes, or comes back.
    pub(crate) fn share_otherwise(&mut self, random: &mut Random, stage: &mut Stage) {
        let number = random.below(SERVICES);
        let Some(address) = address(stage).filter(|_| self.can_share()) else { return };
        let there = (0..SERVICES).filter(|n| self.services.contains_key(&place(*n))).count();
        if there == 1 {
            for number in 0..SERVICES {
                let made = || service(number, Some(&address));
                self.services.entry(place(number)).or_insert_with(made);
            }
        } else if self.services.remove(&place(number)).is_some() {
            self.delete(stage, &place(number));
        } else {
            self.services.insert(place(number), service(number, Some(&address)));
        }
        self.tend(stage);
    }
}
