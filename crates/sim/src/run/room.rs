//! Rules fill the network interfaces of the nodes: Azure gives each 300 from the public and the
//! internal load balancer together. The last tenth is for namespaces that have less than their
//! share (docs/limits.md).

use super::Play;
use crate::check::form::{conditions, parts};
use crate::check::tenants::is_refused;
use crate::scene::Layout;
use crate::scene::objects::service;
use crate::tally::count;
use kube_emulator::ObjectRef;
use model::kubernetes::SERVICE_CONDITION;
use plan::ask::annotation::full;
use serde_json::{Value, json};

/// In how many of a thousand seeds that it suits.
const FILLED: u64 = 700;
/// Rules of a network interface, and those that every namespace may have.
const MOST: u64 = 300;
const FREE: u64 = 270;
/// With more than this before, the guest that fills the rest would have no more than its share.
const BEFORE: u64 = 100;
/// Guests of one namespace, of which the first takes all that it may, and one of another.
const GREEDY: (&str, u64) = ("default", 53);
const LATE: (&str, u64) = ("default", 54);
const OTHER: (&str, u64) = ("team", 55);
const INTERNAL: &str = "azure-load-balancer-internal";

/// So many ports. Floating IP leads to them without node ports, of which there are not as many.
fn ports(many: u64) -> Value {
    let port = |number: u64| {
        json!({"name": format!("p-{number}"), "port": 20_000 + number, "targetPort": 8080,
            "protocol": "TCP"})
    };
    (0..many).map(port).collect()
}

impl Play {
    /// S9: what one namespace has takes the last tenth from no other. S6: more than Azure takes is
    /// not asked for, and L1: what there is room for is.
    pub(super) fn be_crammed(&mut self) {
        let nics = self.stage.scene.layout == Layout::Nics && !self.company.scene.other_pools;
        let suits = nics && self.late.fork("room").permille(FILLED);
        if self.stage.breach.is_some() || !suits {
            return;
        }
        let before = self.rules();
        if before > BEFORE {
            return;
        }
        self.crowd_in(GREEDY, FREE + 1 - before);
        self.judge_room(GREEDY, false, "S9");
        self.resize(GREEDY, FREE - before);
        self.judge_room(GREEDY, true, "L1");
        self.crowd_in(OTHER, 5);
        self.judge_room(OTHER, true, "S9");
        self.crowd_in(LATE, 1);
        self.judge_room(LATE, false, "S9");
        self.resize(OTHER, MOST - FREE + 1);
        self.judge_room(OTHER, false, "S6");
        self.resize(OTHER, MOST - FREE);
        self.judge_room(OTHER, true, "S9");
        self.go(GREEDY);
        self.heal();
        self.judge_room(LATE, true, "L1");
        self.judge_end();
        self.go(LATE);
        self.go(OTHER);
        self.come_to_rest();
    }

    /// A guest comes with so many ports.
    fn crowd_in(&mut self, (namespace, slot): (&str, u64), many: u64) {
        let mut guest = service(namespace, slot);
        guest["spec"]["ports"] = ports(many);
        guest["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
        guest["metadata"]["annotations"][full(INTERNAL)] = json!("true");
        let place = (namespace.to_owned(), format!("web-{slot}"));
        self.company.services.insert(place, guest);
        self.stage.ledger.inputs += 1;
        self.heal();
    }

    /// A guest has so many ports from now on.
    fn resize(&mut self, (namespace, slot): (&str, u64), many: u64) {
        let place = (namespace.to_owned(), format!("web-{slot}"));
        self.stage.ledger.inputs += 1;
        let patch = json!({"spec": {"ports": ports(many)}});
        self.company.apply(&mut self.stage, &place, &patch);
        self.heal();
    }

    /// Whether a guest is served as it is to be, and no more rules stand than Azure takes.
    fn judge_room(&mut self, (namespace, slot): (&str, u64), served: bool, rule: &'static str) {
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, rule);
        let name = format!("web-{slot}");
        let object = self.stage.kubernetes.get(ObjectRef::new("services", namespace, &name));
        let Ok(guest) = object else { return };
        let own = conditions(&guest).find(|condition| condition["type"] == SERVICE_CONDITION);
        let says = own.map(|condition| condition["message"].to_string()).unwrap_or_default();
        let rules = self.rules();
        if is_refused(&guest) == served {
            let must = if served { "room" } else { "no room" };
            let text = format!("{namespace}/{name} says {says}; of {rules} rules it has {must}");
            self.stage.fail(rule, text);
        } else if rules > MOST {
            self.stage.fail("S6", format!("{rules} rules are on each network interface"));
        }
    }

    /// Rules of the load balancers whose pools the nodes are in.
    fn rules(&self) -> u64 {
        let policy = self.stage.config.policy();
        let name = policy.balancer_name.as_deref().unwrap_or(&policy.cluster);
        let all = [name.to_owned(), format!("{name}-internal")];
        let all = all.iter().filter_map(|name| {
            let id = policy.balancer_id(name);
            self.stage.azure.shown_by_id(id.as_str())
        });
        all.map(|balancer| parts(&balancer, "loadBalancingRules").len() as u64).sum()
    }
}
