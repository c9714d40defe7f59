//! Random walks of a cluster with container load balancers: Services, Pods, egress labels and nodes
//! come, change, move and go while Azure and Kubernetes misbehave, somebody else edits the gateway,
//! and the controller is killed. Then the faults stop and everything must come right. A failing
//! seed is named; it fails again.

use crate::support::container::*;
use crate::support::{create, node, patch};
use crate::walk::{Dice, seeds};
use azure_emulator::{Fault, FaultKind, Request};
use kube_emulator::{Failure, Fault as KubernetesFault, Part};
use serde_json::{Value, json};
use sim::{Laboratory, Moment, Witness};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Location, address and name: who was ever meant to get traffic where.
type Ever = BTreeSet<(String, String, String)>;

struct Walk {
    dice: Dice,
    lab: Laboratory,
    services: Vec<String>,
    made: u32,
    pods: Vec<String>,
    ever: Rc<RefCell<Ever>>,
}

const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

fn azure_fault(dice: &mut Dice) -> Fault {
    let code = |code: &str| code.to_owned();
    let kind = match dice.roll(15) {
        0 => refusal(429, "TooManyRequests", Some(3)),
        1 => refusal(500, "InternalServerError", None),
        2 => refusal(409, "AnotherOperationInProgress", None),
        3 => refusal(412, "PreconditionFailed", None),
        4 => refusal(429, "RetryableErrorDueToAnotherOperation", None),
        5 | 6 => FaultKind::AppliedThenReset,
        7 => FaultKind::ConnectionResetBefore,
        8 => FaultKind::StaleList { age_ms: 2_000 },
        9 => FaultKind::TruncatedBody,
        10 => FaultKind::GatewayErrorIn200 { code: code("InternalServerError") },
        11 => FaultKind::GatewayAccepted,
        12 => FaultKind::GatewayAcceptedThenFails { code: code("InternalServerError") },
        13 => FaultKind::OperationFails { code: code("InternalServerError") },
        _ => refusal(400, "InvalidRequestFormat", None),
    };
    let (skip, times) = (dice.roll(6), 1 + dice.roll(3));
    let fault = Fault::new(kind).skip(skip).times(times);
    match dice.roll(4) {
        0 => fault.on_path("/updateAddressLocations$").expect("it parses"),
        1 => fault.on_path("/updateServices$").expect("it parses"),
        _ => fault,
    }
}

impl Walk {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut lab = container_laboratory(4);
        lab.azure_latency_ms = dice.roll(3) * 25;
        lab.azure.options_mut().lro_ms = dice.roll(3) * 60;
        lab.azure.options_mut().page_size = if dice.roll(2) == 0 { 0 } else { 2 };
        let ever: Rc<RefCell<Ever>> = Rc::default();
        let known = Rc::clone(&ever);
        lab.witness = Some(Witness::new(move |_, azure, _| {
            let mut places: BTreeMap<String, String> = BTreeMap::new();
            for ((location, address), names) in table_of(azure) {
                let other = places.insert(address.clone(), location.clone());
                assert_eq!(other, None, "seed {seed}: {address} is at {location}, too");
                for name in names {
                    let entry = (location.clone(), address.clone(), name);
                    assert!(known.borrow().contains(&entry), "seed {seed}: nobody asked {entry:?}");
                }
            }
        }));
        Self { dice, lab, services: Vec::new(), made: 0, pods: Vec::new(), ever }
    }

    /// Notes what is wanted now.
    fn note(&mut self) {
        for ((location, address), names) in wanted_with(&self.lab, Lingering::Always) {
            let entries = names.into_iter().map(|n| (location.clone(), address.clone(), n));
            self.ever.borrow_mut().extend(entries);
        }
    }

    fn step(&mut self) {
        match self.dice.roll(22) {
            0..=2 => self.add_service(),
            3 => self.delete_service(),
            4 | 5 => self.edit_service(),
            6..=9 => self.add_pod(),
            10 | 11 => self.edit_pod(),
            12 => self.remove_pod(),
            13 => self.replace_pod(),
            14 => self.move_node(),
            15 | 16 => {
                let fault = azure_fault(&mut self.dice);
                self.lab.azure.add_fault(fault);
            }
            17 => {
                let failures = [Failure::Conflict, Failure::Internal, Failure::Unavailable];
                let failure = *self.dice.pick(&failures).expect("there are three");
                self.lab.kubernetes.inject(KubernetesFault::next(failure));
            }
            18 => self.lab.restart(),
            19 => {
                let moment = if self.dice.roll(2) == 0 { Moment::Before } else { Moment::After };
                let calls = self.dice.roll(8);
                self.lab.crash_after(calls, moment);
            }
            20 => self.meddle(),
            _ => self.lab.kubernetes.compact(),
        }
    }

    fn add_service(&mut self) {
        let mut service = crate::support::service(self.made);
        service["spec"]["selector"] = json!({"app": format!("app-{}", self.dice.roll(3))});
        create(&mut self.lab, service);
        self.services.push(web_name(self.made));
        self.made += 1;
    }

    fn delete_service(&mut self) {
        if let Some(name) = self.dice.pick(&self.services).cloned() {
            self.services.retain(|other| *other != name);
            remove(&mut self.lab, "services", "default", &name);
        }
    }

    fn edit_service(&mut self) {
        let Some(name) = self.dice.pick(&self.services).cloned() else { return };
        let body = match self.dice.roll(7) {
            0 => json!({"spec": {"type": "ClusterIP"}}),
            1 | 2 => json!({"spec": {"type": "LoadBalancer"}}),
            3 => json!({"metadata": {"annotations": {INTERNAL: "true"}}}),
            4 => json!({"metadata": {"annotations": {INTERNAL: null}}}),
            5 => json!({"spec": {"selector": {"app": format!("app-{}", self.dice.roll(3))}}}),
            _ => {
                let port = 80 + self.dice.roll(3);
                json!({"spec": {"ports": [{"name": "http", "port": port, "targetPort": 8080}]}})
            }
        };
        patch(&mut self.lab, "services", "default", &name, body);
    }

    /// An address that no living Pod has; now and then that of a Pod that is over or going.
    fn free_address(&mut self) -> String {
        let living: BTreeSet<String> = (self.lab.kubernetes.list("pods", None).iter())
            .filter(|pod| is_alive(pod))
            .flat_map(|pod| {
                texts(pod, "/status/podIPs", "ip")
                    .into_iter()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        loop {
            let ip = format!("10.244.0.{}", 1 + self.dice.roll(40));
            if !living.contains(&ip) {
                return ip;
            }
        }
    }

    fn new_pod(&mut self, name: &str) -> Value {
        let ip = self.free_address();
        let node = u32::try_from(self.dice.roll(4)).expect("small");
        let label = *self.dice.pick(&["", "", "team-a", "team-b"]).expect("four");
        let last = ip.rsplit('.').next().unwrap_or("0").to_owned();
        let both = [ip.clone(), format!("fd12::{last}")];
        let addresses: Vec<&str> = if self.dice.roll(3) == 0 {
            both.iter().map(String::as_str).collect()
        } else {
            vec![&ip]
        };
        let mut pod = egress_pod(name, label, &addresses, node);
        let (hosts, _) = self.node_addresses(node);
        for key in ["hostIP", "hostIPs"] {
            pod["status"][key] = hosts[key].clone();
        }
        let app = format!("app-{}", self.dice.roll(3));
        pod["metadata"]["labels"] = json!({"app": app});
        if !label.is_empty() {
            pod["metadata"]["labels"][EGRESS] = json!(label);
        }
        let ready = if self.dice.roll(4) == 0 { "False" } else { "True" };
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        pod
    }

    fn add_pod(&mut self) {
        let name = format!("pod-{:03}", self.pods.len());
        let pod = self.new_pod(&name);
        self.pods.push(name);
        create_pod(&mut self.lab, pod);
    }

    fn any_pod(&mut self) -> Option<String> {
        let there = self.lab.kubernetes.list("pods", None);
        let names: Vec<String> = there
            .iter()
            .filter_map(|p| p["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        self.dice.pick(&names).cloned()
    }

    fn edit_pod(&mut self) {
        let Some(name) = self.any_pod() else { return };
        let (part, body) = match self.dice.roll(8) {
            0 => (Part::Main, json!({"metadata": {"labels": {EGRESS: "team-b"}}})),
            1 => (Part::Main, json!({"metadata": {"labels": {EGRESS: null}}})),
            2 => (Part::Main, json!({"metadata": {"labels": {EGRESS: ""}}})),
            3 => (Part::Status, json!({"status": {"phase": "Succeeded"}})),
            4 => {
                let ip = self.free_address();
                (Part::Status, json!({"status": {"podIP": ip, "podIPs": [{"ip": ip}]}}))
            }
            5 => (Part::Main, json!({"metadata": {"labels": {"app": "app-1"}}})),
            6 => {
                let conditions = json!([{"type": "Ready", "status": "False"}]);
                (Part::Status, json!({"status": {"conditions": conditions}}))
            }
            _ => {
                let conditions = json!([{"type": "Ready", "status": "True"}]);
                (Part::Status, json!({"status": {"conditions": conditions}}))
            }
        };
        merge(&mut self.lab, "pods", &name, part, body);
    }

    fn remove_pod(&mut self) {
        if let Some(name) = self.any_pod() {
            remove(&mut self.lab, "pods", "default", &name);
        }
    }

    /// A Pod goes and another of its name comes at once, where the finalizer lets it.
    fn replace_pod(&mut self) {
        let Some(name) = self.any_pod() else { return };
        remove(&mut self.lab, "pods", "default", &name);
        if pod_of(&self.lab, &name).is_none() {
            let pod = self.new_pod(&name);
            create_pod(&mut self.lab, pod);
        }
    }

    /// The addresses of a node, or those that it is made with.
    fn node_addresses(&self, index: u32) -> (Value, Vec<String>) {
        let there = self.lab.kubernetes.list("nodes", None);
        let found = there.iter().find(|n| n["metadata"]["name"] == node_name(index));
        let node = found.map_or_else(|| node(index), |n| Value::clone(n));
        let ips: Vec<String> = internal_ips(&node).into_iter().map(str::to_owned).collect();
        let hosts: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip})).collect();
        (json!({"hostIP": ips[0], "hostIPs": hosts}), ips)
    }

    fn move_node(&mut self) {
        let index = u32::try_from(self.dice.roll(4)).expect("small");
        let name = node_name(index);
        let there = self.lab.kubernetes.list("nodes", None);
        let exists = there.iter().any(|n| n["metadata"]["name"] == name);
        match (exists, self.dice.roll(2)) {
            (false, _) => create(&mut self.lab, node(index)),
            (true, 0) => return remove(&mut self.lab, "nodes", "", &name),
            (true, _) => {
                let last = u64::from(1 + index * 10) + self.dice.roll(3);
                let addresses = json!([
                    {"type": "InternalIP", "address": format!("10.224.9.{last}")},
                    {"type": "InternalIP", "address": format!("fd00::{:x}", 4 + index)}]);
                let body = json!({"status": {"addresses": addresses}});
                merge(&mut self.lab, "nodes", &name, Part::Status, body);
            }
        }
        // The node's agent writes its new address into the status of its Pods.
        let (status, _) = self.node_addresses(index);
        for pod in self.lab.kubernetes.list("pods", None) {
            if pod["spec"]["nodeName"] == name {
                let pod = pod["metadata"]["name"].as_str().expect("a name");
                merge(&mut self.lab, "pods", pod, Part::Status, json!({"status": status}));
            }
        }
    }

    /// Somebody else takes an address or a registration away, or adds an address of their own.
    fn meddle(&mut self) {
        let entries: Vec<(String, String)> = table(&self.lab).into_keys().collect();
        let names: Vec<String> =
            registered(&self.lab).into_iter().filter(|n| n != "default-natgw").collect();
        let (action, body) = match self.dice.roll(3) {
            0 => {
                let Some((location, address)) = self.dice.pick(&entries).cloned() else { return };
                ("updateAddressLocations", entry(&location, &address, &[]))
            }
            1 => {
                let Some(name) = self.dice.pick(&names).cloned() else { return };
                let leaked = ("10.224.0.4".to_owned(), "10.250.0.1".to_owned(), name.clone());
                let body = entry(&leaked.0, &leaked.1, &[&name]);
                self.ever.borrow_mut().insert(leaked);
                ("updateAddressLocations", body)
            }
            _ => {
                let Some(name) = self.dice.pick(&names).cloned() else { return };
                let service = json!({"name": name, "properties": {}});
                let requests = json!([{"isDelete": true, "service": service}]);
                let action = "PartialUpdate";
                ("updateServices", json!({"action": action, "serviceRequests": requests}))
            }
        };
        let request = Request::new("POST", &format!("{}/{action}", gateway_id())).with_body(body);
        self.lab.azure.handle(request, self.lab.now_ms);
    }
}

fn walk(seed: u64) {
    let mut walk = Walk::new(seed);
    for _ in 0..60 {
        walk.step();
        walk.note();
        let ms = walk.dice.roll(400);
        walk.lab.pass(ms);
    }
    let mut lab = walk.lab;
    lab.azure.clear_faults();
    for name in &walk.services {
        let mended = json!({"metadata": {"annotations": {INTERNAL: null}}});
        patch(&mut lab, "services", "default", name, mended);
    }
    lab.pass(600_000);
    let stuck = |lab: &Laboratory, when: &str| {
        let waits: Vec<_> = lab.controller().waiting().collect();
        format!("seed {seed} does not settle {when}: {:#?} {waits:?}", lab.controller().plan())
    };
    assert!(lab.settle(DAY_MS), "{}", stuck(&lab, "after the faults"));
    check(&lab, &format!("seed {seed}"));
    lab.azure.clear_calls();
    lab.restart();
    assert!(lab.settle(DAY_MS), "{}", stuck(&lab, "after a restart"));
    assert_eq!(lab.calls().0, 0, "seed {seed}: a restart finds nothing to write");
    for name in &walk.services {
        remove(&mut lab, "services", "default", name);
    }
    for pod in lab.kubernetes.list("pods", None) {
        remove(&mut lab, "pods", "default", pod["metadata"]["name"].as_str().expect("a name"));
    }
    lab.pass(600_000);
    assert!(lab.settle(DAY_MS), "{}", stuck(&lab, "after everything is deleted"));
    assert_eq!(container_leftovers(&lab), Vec::<String>::new(), "seed {seed}: nothing is left");
    assert!(
        lab.kubernetes.list("pods", None).is_empty(),
        "seed {seed}: a Pod's finalizer is stuck"
    );
    assert_eq!(
        crate::support::addressed(&lab),
        (0, 0),
        "seed {seed}: a Service's finalizer is stuck"
    );
}

#[test]
fn everything_comes_right_once_the_faults_stop() {
    seeds().for_each(walk);
}
