use crate::reads::LIST_LAG_MS;
use crate::reads::read::{Coming, LeftOut};
use crate::sample::{policy, service};
use crate::{CallId, Controller, Effect, Event, KubernetesAnswer, Leadership, Options};
use arm::exchange::{Answer, Method, Reply, Request, Target, TransportFault};
use model::ServiceUid;
use model::kubernetes::{Custody, EndpointSlice, Service};
use model::world::Kind;
use observe::KubernetesFact as Fact;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

const UID: &str = "00000001-1111-4222-8333-0123456789ab";

fn slice(revision: &str, pods: &[u8]) -> Fact {
    let endpoint = |pod: &u8| fixture::endpoint(IpAddr::from([10, 244, 0, *pod]), "node");
    Fact::Slice(EndpointSlice {
        revision: revision.into(),
        owner: Some(ServiceUid::new(UID)),
        ..fixture::slice("web-1", pods.iter().map(endpoint).collect())
    })
}

fn cluster() -> Vec<Fact> {
    let kinds = Kind::CONTAINER;
    let mut facts: Vec<Fact> = kinds.iter().map(|kind| Fact::ListBegin(*kind)).collect();
    facts.push(Fact::Service(Box::new(service(None))));
    facts.push(Fact::Node(fixture::node("node", vec![IpAddr::from([10, 224, 0, 1])])));
    facts.push(slice("1", &[1]));
    facts.extend(kinds.iter().map(|kind| Fact::ListEnd(*kind, None)));
    facts
}

/// As much of Azure as a container load balancer sees.
#[derive(Default)]
struct Cloud {
    resources: BTreeMap<String, Value>,
    services: BTreeMap<String, Value>,
    table: BTreeMap<String, BTreeMap<String, Value>>,
    writes: Vec<String>,
    /// Answers to address calls that are lost; the calls are carried out.
    lost: u32,
}

/// Whether the API server still has the Service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    Gone,
}

impl Cloud {
    fn answer(&mut self, request: &Request) -> Answer {
        let (Target::Path(text) | Target::Url(text)) = &request.target;
        let path = text.split('?').next().unwrap_or("").to_lowercase();
        let last = path.rsplit('/').next().unwrap_or("").to_owned();
        if request.method.is_write() {
            self.writes.push(format!("{} {last}", request.method.name()));
        }
        let body = match request.method {
            Method::Get => self.read(&path, &last),
            Method::Put => {
                let mut body = request.body.as_ref().expect("a PUT has a body").tree().into_owned();
                if path.contains("publicipaddresses") {
                    body["properties"]["ipAddress"] = json!("20.0.0.1");
                }
                self.resources.insert(path, body.clone());
                body
            }
            Method::Post if last == "updateservices" => {
                let body = request.body.as_ref().expect("it has a body").tree();
                for entry in body["serviceRequests"].as_array().expect("a list") {
                    let name = entry["service"]["name"].as_str().expect("a name").to_owned();
                    self.services.insert(name, entry["service"].clone());
                }
                json!({})
            }
            Method::Post => {
                self.update_table(&request.body.as_ref().expect("it has a body").tree());
                if self.lost > 0 {
                    self.lost -= 1;
                    return Answer::Fault(TransportFault::Ambiguous("timeout".to_owned()));
                }
                json!({})
            }
            Method::Delete | Method::Patch => panic!("nothing is deleted here"),
        };
        Answer::Reply(Box::new(Reply { status: 200, body: Some(body.into()), ..Reply::default() }))
    }

    fn update_table(&mut self, body: &Value) {
        for location in body["addressLocations"].as_array().expect("a list") {
            let name = location["addressLocation"].as_str().expect("a text").to_owned();
            let at = self.table.entry(name).or_default();
            for address in location["addresses"].as_array().into_iter().flatten() {
                let key = address["address"].as_str().expect("a text").to_owned();
                if address["services"].as_array().is_some_and(Vec::is_empty) {
                    at.remove(&key);
                } else {
                    at.insert(key, address["services"].clone());
                }
            }
        }
    }

    fn read(&self, path: &str, last: &str) -> Value {
        let items: Vec<Value> = match last {
            "services" => self.services.values().cloned().collect(),
            "addresslocations" => {
                let entry = |(ip, of): (&String, &Value)| json!({ "address": ip, "services": of });
                let location = |(ip, at): (&String, &BTreeMap<String, Value>)| {
                    let addresses: Vec<Value> = at.iter().map(entry).collect();
                    json!({ "addressLocation": ip, "addresses": addresses })
                };
                self.table.iter().map(location).collect()
            }
            _ => {
                let below = self.resources.iter().filter(|(id, _)| id.starts_with(path));
                below.map(|(_, body)| body.clone()).collect()
            }
        };
        json!({ "value": items })
    }
}

struct Run {
    controller: Controller,
    cloud: Cloud,
    now_ms: u64,
    presence: Presence,
    /// Writes of finalizers.
    claims: u32,
}

impl Run {
    fn new() -> Self {
        let controller = Controller::new(policy(), Options::default());
        let (cloud, presence) = (Cloud::default(), Presence::There);
        Self { controller, cloud, now_ms: 0, presence, claims: 0 }
    }

    fn answer(&mut self, effect: Effect) -> Vec<Event> {
        match effect {
            Effect::Azure { call, request } => {
                vec![Event::Azure { call, answer: self.cloud.answer(&request) }]
            }
            Effect::Kubernetes { call, request } => {
                let ingress = &request.body["status"]["loadBalancer"]["ingress"];
                let ip = ingress[0]["ip"].as_str();
                self.claims += u32::from(request.body["metadata"]["finalizers"].is_array());
                if self.presence == Presence::Gone {
                    let answer =
                        KubernetesAnswer::Reply { status: 404, retry_after_ms: None, body: None };
                    return vec![Event::KubernetesWritten { call, answer }];
                }
                let mut events = vec![accepted(call)];
                if request.path.ends_with("/status") {
                    let told = &request.body["status"]["conditions"][0];
                    let condition = told.is_object().then(|| condition(told));
                    let told = Service { revision: "2".into(), condition, ..service(ip) };
                    events.push(Event::Kubernetes(Fact::Service(Box::new(told))));
                }
                events
            }
            Effect::Say(_) => Vec::new(),
        }
    }

    /// Answers all that comes of something, at this moment.
    fn drive(&mut self, mut events: Vec<Event>) {
        while !events.is_empty() {
            let effects = self.controller.step(std::mem::take(&mut events), self.now_ms);
            events = effects.into_iter().flat_map(|effect| self.answer(effect)).collect();
        }
    }

    fn go(&mut self, facts: Vec<Fact>) {
        self.take(facts.into_iter().map(Event::Kubernetes).collect());
    }

    fn take(&mut self, mut events: Vec<Event>) {
        for _ in 0..200 {
            let effects = self.controller.step(std::mem::take(&mut events), self.now_ms);
            for effect in effects {
                events.extend(self.answer(effect));
            }
            if events.is_empty() {
                if self.controller.is_settled() {
                    return;
                }
                self.now_ms = self.controller.next_wake_ms().unwrap_or(0).max(self.now_ms + 1);
            }
        }
        panic!("it does not settle: {:#?}", self.controller.plan());
    }
}

/// The condition of a patch.
fn condition(told: &Value) -> model::kubernetes::Condition {
    let text = |key: &str| Arc::from(told[key].as_str().unwrap_or_default());
    let truth = match told["status"].as_str() {
        Some("True") => model::kubernetes::Truth::True,
        _ => model::kubernetes::Truth::False,
    };
    let since = Some(text("lastTransitionTime"));
    model::kubernetes::Condition { truth, reason: text("reason"), message: text("message"), since }
}

fn accepted(call: CallId) -> Event {
    let answer = KubernetesAnswer::Reply { status: 200, retry_after_ms: None, body: None };
    Event::KubernetesWritten { call, answer }
}

#[test]
fn a_service_is_four_writes() {
    let mut run = Run::new();
    run.go(cluster());
    let pip = format!("PUT {UID}-pip");
    let balancer = format!("PUT {UID}");
    let wanted = [&*pip, &*balancer, "POST updateservices", "POST updateaddresslocations"];
    assert_eq!(run.cloud.writes, wanted);
}

#[test]
fn after_a_lost_answer_the_tables_are_read_and_nothing_is_written_twice() {
    let mut run = Run::new();
    run.go(cluster());
    run.cloud.writes.clear();
    run.cloud.lost = 1;
    run.go(vec![slice("2", &[1, 2])]);
    assert_eq!(run.cloud.writes, ["POST updateaddresslocations"]);
    // The Pod goes whose addition was never acknowledged: it is known to be there.
    run.go(vec![slice("3", &[1])]);
    let addresses: BTreeSet<&String> = run.cloud.table.values().flat_map(BTreeMap::keys).collect();
    assert_eq!(addresses.len(), 1);
}

/// A look for drift is under way while a write is, and the answer to the write is lost.
#[test]
fn a_read_from_before_a_lost_answer_does_not_count() {
    let mut run = Run::new();
    run.go(cluster());
    run.now_ms += 3_600_000;
    let (mut early, mut events) = (None, Vec::new());
    for _ in 0..5 {
        for effect in run.controller.step(std::mem::take(&mut events), run.now_ms) {
            match effect {
                Effect::Azure { call, request } if is_of_addresses(&request) => {
                    early = Some(Event::Azure { call, answer: run.cloud.answer(&request) });
                }
                effect => events.extend(run.answer(effect)),
            }
        }
    }
    run.cloud.lost = 1;
    events.push(Event::Kubernetes(slice("2", &[1, 2])));
    run.drive(events);
    assert_eq!(run.cloud.lost, 0, "the address was written");
    let early = early.expect("the table is looked at for drift");
    let effects = run.controller.step([early], run.now_ms);
    let azure = &run.controller.world().azure;
    assert!(azure.gateway_locations.known().is_none(), "it does not show the address");
    let is_read = |effect: &Effect| match effect {
        Effect::Azure { request, .. } => is_of_addresses(request),
        _ => false,
    };
    assert!(effects.iter().any(is_read), "it is read now: {effects:#?}");
}

/// Whether a request reads the table of addresses.
fn is_of_addresses(request: &Request) -> bool {
    let (Target::Path(path) | Target::Url(path)) = &request.target;
    request.method == Method::Get && path.to_lowercase().contains("/addresslocations")
}

/// A table that nobody knows is being written, and meanwhile the look for drift is due.
#[test]
fn nobody_wakes_for_a_read_that_waits_for_a_write() {
    let mut run = Run::new();
    run.go(cluster());
    let facts = [slice("2", &[1, 2])].map(Event::Kubernetes);
    let effects = run.controller.step(facts, run.now_ms);
    let post = effects.into_iter().find_map(|effect| match effect {
        Effect::Azure { call, request } if request.method == Method::Post => Some(call),
        _ => None,
    });
    run.controller.world.azure.gateway_locations = model::world::Fact::Unknown;
    run.controller.planning.dirty = true;
    run.now_ms += 3_600_000;
    // Other reads are due, too; they are answered.
    let mut events = Vec::new();
    for _ in 0..5 {
        let effects = run.controller.step(std::mem::take(&mut events), run.now_ms);
        events = effects.into_iter().flat_map(|effect| run.answer(effect)).collect();
    }
    let wake_ms = run.controller.next_wake_ms();
    assert!(wake_ms.is_none_or(|at| at > run.now_ms), "{wake_ms:?} at {}", run.now_ms);
    // The answer that it waits for comes.
    let reply = Reply { status: 200, body: Some(json!({}).into()), ..Reply::default() };
    let answer = Answer::Reply(Box::new(reply));
    let call = post.expect("the addresses are being written");
    let effects = run.controller.step([Event::Azure { call, answer }], run.now_ms);
    let reads = |effect: &Effect| {
        let Effect::Azure { request, .. } = effect else { return false };
        let (Target::Path(path) | Target::Url(path)) = &request.target;
        path.to_lowercase().contains("addresslocations")
    };
    assert!(effects.iter().any(reads), "it is read now: {effects:#?}");
}

#[test]
fn a_read_that_is_older_than_a_write_does_not_undo_it() {
    let mut run = Run::new();
    run.go(cluster());
    let sent_ms = run.now_ms;
    let old = [run.cloud.read("", "addresslocations")["value"][0].clone()];
    run.now_ms += 5;
    run.go(vec![slice("2", &[1, 2])]);
    run.cloud.writes.clear();
    let need = model::world::Need::GatewayLocations;
    let mut gathering = observe::azure::Gathering::default();
    gathering.take(&run.controller.world().azure, run.controller.policy(), &need, &old);
    let times = (sent_ms, run.now_ms);
    let read = run.controller.store_table(&need, gathering, times, Coming::Whole);
    assert_eq!(read, Some((LeftOut::default(), Vec::new())));
    let locations = run.controller.world().azure.gateway_locations.known().expect("it was read");
    let listed = &locations[&IpAddr::from([10, 224, 0, 1])];
    assert!(listed.contains_key(&IpAddr::from([10, 244, 0, 2])), "{listed:?}");
    // And nobody takes what is there for missing.
    run.go(vec![slice("3", &[1])]);
    run.go(vec![slice("4", &[1, 2])]);
    assert_eq!(run.cloud.writes, ["POST updateaddresslocations"; 2]);
}

/// Services and Pods come and go for months.
#[test]
fn what_was_written_is_forgotten_once_a_read_is_certain_to_show_it() {
    let mut run = Run::new();
    run.go(cluster());
    let kept = |run: &Run| {
        let touched = &run.controller.lanes.touched;
        (touched.services.len(), touched.locations.len())
    };
    assert_eq!(kept(&run), (1, 1));
    let mut read = |need: model::world::Need, after_ms: u64| {
        let gathering = observe::azure::Gathering::default();
        let times = (run.now_ms + after_ms, run.now_ms + after_ms);
        run.controller.store_table(&need, gathering, times, Coming::Whole);
        kept(&run)
    };
    assert_eq!(read(model::world::Need::GatewayServices, 0), (1, 1));
    assert_eq!(read(model::world::Need::GatewayServices, 2 * LIST_LAG_MS), (0, 1));
    assert_eq!(read(model::world::Need::GatewayLocations, 2 * LIST_LAG_MS), (0, 0));
}

#[test]
fn who_takes_over_plans_on_no_table_that_was_read_before() {
    let mut run = Run::new();
    run.go(cluster());
    // Another one read the services before they were registered, and the addresses after that: to
    // it they lead to nobody.
    let services = std::mem::take(&mut run.cloud.services);
    let (table, leadership) = (run.cloud.table.clone(), Leadership::Lost);
    run.controller = Controller::new(policy(), Options { leadership, ..Options::default() });
    run.drive(cluster().into_iter().map(Event::Kubernetes).collect());
    run.cloud.services = services;
    run.cloud.writes.clear();
    run.drive(vec![Event::Leadership(Leadership::Held)]);
    let tables: Vec<&String> = run.cloud.writes.iter().filter(|w| w.contains("POST")).collect();
    assert_eq!(tables, Vec::<&String>::new());
    assert_eq!(run.cloud.table, table);
}

#[test]
fn who_takes_over_doubts_lists_about_the_gateways_of_marked_pods() {
    let mut run = Run::new();
    let pod = json!({"metadata": {"name": "p", "namespace": "default", "uid": "pod",
        "resourceVersion": "1", "finalizers": [model::kubernetes::POD_FINALIZER],
        "labels": {"kubernetes.azure.com/service-egress-gateway": "team"},
        "annotations": {model::kubernetes::EGRESS_MARKS: "team"}}, "status": {"phase": "Running"}});
    let mut interner = observe::Interner::default();
    let pod = observe::kubernetes::pod_from_value(&pod, &mut interner).expect("a Pod");
    let (leadership, team) = (Leadership::Lost, ServiceUid::new("team"));
    run.controller = Controller::new(policy(), Options { leadership, ..Options::default() });
    run.drive(vec![Event::Kubernetes(Fact::Pod(pod))]);
    // Lists have been read since it came.
    run.controller.world.inherited.clear();
    run.controller.step([Event::Leadership(Leadership::Held)], run.now_ms);
    assert!(
        run.controller.world.inherited.contains(&team),
        "its public IP may have just been made"
    );
}

/// Lists that it read while another process wrote are no ground to write on.
#[test]
fn who_takes_over_writes_nothing_before_it_has_read_anew() {
    let mut run = Run::new();
    let leadership = Leadership::Lost;
    run.controller = Controller::new(policy(), Options { leadership, ..Options::default() });
    run.drive(cluster().into_iter().map(Event::Kubernetes).collect());
    run.now_ms += 60_000;
    let methods = |effects: &[Effect]| -> BTreeSet<&'static str> {
        let azure = effects.iter().filter_map(|effect| match effect {
            Effect::Azure { request, .. } => Some(request.method.name()),
            _ => None,
        });
        azure.collect()
    };
    let mut sent = run.controller.step([Event::Leadership(Leadership::Held)], run.now_ms);
    assert_eq!(methods(&sent), BTreeSet::from(["GET"]));
    while !sent.is_empty() {
        let events: Vec<Event> = sent.drain(..).flat_map(|effect| run.answer(effect)).collect();
        sent = run.controller.step(events, run.now_ms);
    }
    assert_ne!(run.cloud.writes, Vec::<String>::new());
}

/// A watch that lags shows it after this process was given the right to write.
#[test]
fn a_finalizer_of_another_process_is_not_taken_for_our_own() {
    let bare = Service { finalizers: Vec::new(), ..service(None) };
    let claimed = || {
        let service = Service { revision: "2".into(), ..service(None) };
        Event::Kubernetes(Fact::Service(Box::new(service)))
    };
    let mut run = Run::new();
    run.controller.step([Event::Kubernetes(Fact::Service(Box::new(bare.clone())))], 0);
    run.controller.step([claimed()], 0);
    let uid = ServiceUid::new(UID);
    assert!(run.controller.world.inherited.contains(&uid), "what it made need not be listed yet");
    assert_eq!(run.controller.world.kubernetes.services[&uid].custody, Custody::Inherited);

    let mut run = Run::new();
    let mut facts = cluster();
    for fact in &mut facts {
        if let Fact::Service(service) = fact {
            **service = bare.clone();
        }
    }
    run.controller.step(facts.into_iter().map(Event::Kubernetes), 0);
    assert_eq!(run.controller.term.claims.len(), 1, "it has asked for it");
    run.controller.step([claimed()], 0);
    assert!(run.controller.world.inherited.is_empty());
    assert_eq!(run.controller.world.kubernetes.services[&uid].custody, Custody::Own);
}

#[test]
fn a_table_that_is_read_after_a_write_is_not_waited_for_by_waking() {
    let mut run = Run::new();
    run.go(cluster());
    // A write of the addresses is under way, and its answer does not come.
    let event = Event::Kubernetes(slice("2", &[1, 2]));
    let sent = run.controller.step([event], run.now_ms);
    let calls = |effects: &[Effect]| {
        effects.iter().filter(|effect| !matches!(effect, Effect::Say(_))).count()
    };
    assert_eq!(calls(&sent), 1, "{sent:#?}");
    // Another write's outcome is not known: nobody knows the tables any more.
    run.controller.forget_tables();
    let need = model::world::Need::GatewayServices;
    let read = run.controller.step([], run.now_ms);
    let lists = read.iter().filter(|effect| matches!(effect, Effect::Azure { .. })).count();
    assert_eq!(lists, 1, "the table that is not being written: {need:?} {read:#?}");
    let later_ms = run.now_ms + 2 * run.controller.options.check_interval_ms;
    for effect in read {
        let events = run.answer(effect);
        run.controller.step(events, run.now_ms);
    }
    let mut due = run.controller.step([], later_ms);
    while !due.is_empty() {
        let events: Vec<Event> = due.drain(..).flat_map(|effect| run.answer(effect)).collect();
        due = run.controller.step(events, later_ms);
    }
    let wake_ms = run.controller.next_wake_ms();
    assert!(wake_ms.is_none_or(|at| at > later_ms), "{wake_ms:?} is over at {later_ms}");
}

/// The process that could write before this one has let the Service go; the watch does not show it
/// yet.
#[test]
fn a_service_that_is_gone_gets_nothing() {
    let mut run = Run::new();
    run.presence = Presence::Gone;
    run.go(cluster());
    assert_eq!((run.claims, run.cloud.writes), (1, Vec::new()));
}

#[test]
fn what_was_ours_before_the_lease_was_lost_may_be_gone() {
    let mut run = Run::new();
    run.go(cluster());
    assert_eq!(run.claims, 1);
    let regain = [Leadership::Lost, Leadership::Held].map(Event::Leadership);
    run.take(regain.to_vec());
    assert_eq!(run.claims, 1, "it stands, so nobody asks");
    run.cloud = Cloud::default();
    run.presence = Presence::Gone;
    run.cloud.writes.clear();
    run.now_ms += 3_600_000;
    run.take(regain.to_vec());
    assert_eq!((run.claims, run.cloud.writes), (2, Vec::new()));
}

/// Somebody made the public IP while our own write of it waited for its answer, and the list that
/// showed it came in between: the write was refused, so the list was right.
#[test]
fn a_list_that_came_during_a_write_that_changed_nothing_is_read_again() {
    let mut run = Run::new();
    let mut events: Vec<Event> = cluster().into_iter().map(Event::Kubernetes).collect();
    let mut put = None;
    for _ in 0..20 {
        for effect in run.controller.step(std::mem::take(&mut events), run.now_ms) {
            match effect {
                Effect::Azure { call, request } if request.method == Method::Put => {
                    put = Some((call, request));
                }
                effect => events.extend(run.answer(effect)),
            }
        }
    }
    let (call, request) = put.expect("the public IP is being made");
    run.cloud.answer(&request);
    run.cloud.writes.clear();
    // The look for drift.
    run.now_ms += 3_600_000;
    for _ in 0..20 {
        for effect in run.controller.step(std::mem::take(&mut events), run.now_ms) {
            events.extend(run.answer(effect));
        }
    }
    let reply = Reply { status: 429, body: Some(json!({}).into()), ..Reply::default() };
    let answer = Answer::Reply(Box::new(reply));
    let effects = run.controller.step([Event::Azure { call, answer }], run.now_ms);
    let events: Vec<Event> = effects.into_iter().flat_map(|effect| run.answer(effect)).collect();
    let effects = run.controller.step(events, run.now_ms);
    let events: Vec<Event> = effects.into_iter().flat_map(|effect| run.answer(effect)).collect();
    run.controller.step(events, run.now_ms);
    run.go(Vec::new());
    let again = run.cloud.writes.iter().filter(|write| write.ends_with("-pip")).count();
    assert_eq!(again, 0, "{:?}", run.cloud.writes);
}
