use super::*;
use crate::fake::{Act, Fake, Seen, json};
use crate::kubernetes::{ConnectFrom, connect};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// An API server that knows one Lease.
#[derive(Default)]
struct Leases {
    object: Mutex<Option<Value>>,
    broken: AtomicBool,
}

impl Leases {
    fn answer(&self, seen: &Seen) -> Act {
        if self.broken.load(Ordering::SeqCst) {
            return json(503, &json!({"message": "broken"}));
        }
        let mut object = self.object.lock().unwrap();
        if seen.method == "GET" {
            return match &*object {
                Some(object) => json(200, object),
                None => json(404, &json!({"message": "no such lease"})),
            };
        }
        let mut wanted: Value = serde_json::from_str(&seen.body).unwrap();
        let revision = |o: &Value| o["metadata"]["resourceVersion"].as_str().map(str::to_string);
        let stored = object.as_ref().and_then(revision);
        if revision(&wanted) != stored {
            return json(409, &json!({"message": "changed"}));
        }
        let next = stored.map_or(1, |r| r.parse::<u64>().unwrap() + 1);
        wanted["metadata"]["resourceVersion"] = json!(next.to_string());
        *object = Some(wanted.clone());
        json(if seen.method == "POST" { 201 } else { 200 }, &wanted)
    }

    fn spec(&self, field: &str) -> Value {
        self.object.lock().unwrap().as_ref().unwrap()["spec"][field].clone()
    }

    /// Somebody else writes the lease.
    fn write(&self, holder: &str, seconds: u64) {
        let mut object = self.object.lock().unwrap();
        *object = Some(json!({
            "metadata": {"name": "l", "namespace": "n", "resourceVersion": "100"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": "x"},
        }));
    }

    /// An operator annotates the lease.
    fn annotate(&self, value: &str) {
        let mut object = self.object.lock().unwrap();
        let object = object.as_mut().unwrap();
        object["metadata"]["resourceVersion"] = json!("1000");
        object["metadata"]["annotations"] = json!({PAUSE: value});
    }
}

struct Place {
    leases: Arc<Leases>,
    fake: Fake,
    clock: Clock,
}

impl Place {
    async fn new() -> Self {
        let leases = Arc::new(Leases::default());
        let server = Arc::clone(&leases);
        let fake = Fake::start(move |seen, _| server.answer(seen)).await;
        Self { leases, fake, clock: Clock::start() }
    }

    async fn run(&self, identity: &str, times: [u64; 3]) -> (Election, mpsc::Receiver<Event>) {
        let client = connect(&ConnectFrom::Address(self.fake.url.clone()), "t").await.unwrap();
        let [lease_ms, renew_deadline_ms, retry_ms] = times;
        let settings = LeaseSettings {
            namespace: "n".into(),
            name: "l".into(),
            identity: identity.into(),
            lease_ms,
            renew_deadline_ms,
            retry_ms,
        };
        let (sender, receiver) = mpsc::channel(8);
        (Election::start(client, settings, self.clock, sender).unwrap(), receiver)
    }
}

const PATIENT: [u64; 3] = [60_000, 40_000, 10];

async fn leadership(events: &mut mpsc::Receiver<Event>) -> Leadership {
    match events.recv().await.expect("the election goes on") {
        Event::Leadership(leadership) => leadership,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_free_lease_is_taken_renewed_and_given_up_for_the_next() {
    let place = Place::new().await;
    let (first, mut first_events) = place.run("a", PATIENT).await;
    let held = first.held();
    assert_eq!(leadership(&mut first_events).await, Leadership::Held);
    assert!(held.allows(place.clock.now_ms()));
    assert!(held.deadline_ms() <= place.clock.now_ms() + 40_000);
    assert_eq!(place.leases.spec("holderIdentity"), "a");
    let (second, mut second_events) = place.run("b", PATIENT).await;
    // Only the release lets the second in: the lease would run for another minute.
    first.release().await;
    assert!(!held.allows(place.clock.now_ms()));
    assert_eq!(leadership(&mut second_events).await, Leadership::Held);
    assert_eq!(place.leases.spec("holderIdentity"), "b");
    second.release().await;
    assert_eq!(place.leases.spec("holderIdentity"), "");
}

#[tokio::test]
async fn a_holder_that_stays_silent_is_replaced() {
    let place = Place::new().await;
    place.leases.write("gone", 1);
    let (election, mut events) = place.run("a", [1_000, 900, 20]).await;
    let began_ms = place.clock.now_ms();
    assert_eq!(leadership(&mut events).await, Leadership::Held);
    assert!(place.clock.now_ms() >= began_ms + 900, "it waited for the lease to run out");
    assert_eq!(place.leases.spec("leaseTransitions"), 1);
    election.release().await;
}

#[tokio::test]
async fn a_leader_that_cannot_renew_loses_the_right_and_wins_it_back() {
    let place = Place::new().await;
    let (election, mut events) = place.run("a", [1_500, 1_000, 20]).await;
    assert_eq!(leadership(&mut events).await, Leadership::Held);
    place.leases.broken.store(true, Ordering::SeqCst);
    assert_eq!(leadership(&mut events).await, Leadership::Lost);
    assert!(!election.held().allows(place.clock.now_ms()));
    place.leases.broken.store(false, Ordering::SeqCst);
    assert_eq!(leadership(&mut events).await, Leadership::Held);
    election.release().await;
}

#[tokio::test]
async fn a_deposed_leader_stops_and_leaves_the_lease_to_its_holder() {
    let place = Place::new().await;
    let (election, mut events) = place.run("a", PATIENT).await;
    assert_eq!(leadership(&mut events).await, Leadership::Held);
    place.leases.write("usurper", 60);
    assert_eq!(leadership(&mut events).await, Leadership::Lost);
    election.release().await;
    assert_eq!(place.leases.spec("holderIdentity"), "usurper");
}

#[tokio::test]
async fn a_pause_is_told_to_the_leader_and_to_its_successor_before_it_leads() {
    let place = Place::new().await;
    let (first, mut events) = place.run("a", PATIENT).await;
    assert_eq!(leadership(&mut events).await, Leadership::Held);
    place.leases.annotate("true");
    assert_eq!(events.recv().await, Some(Event::Pause(Some(Pause::All))));
    first.release().await;
    let (second, mut events) = place.run("b", PATIENT).await;
    assert_eq!(events.recv().await, Some(Event::Pause(Some(Pause::All))));
    assert_eq!(leadership(&mut events).await, Leadership::Held);
    place.leases.annotate("false");
    assert_eq!(events.recv().await, Some(Event::Pause(None)));
    second.release().await;
}

#[tokio::test]
async fn times_that_do_not_fit_are_refused() {
    let place = Place::new().await;
    let client = connect(&ConnectFrom::Address(place.fake.url.clone()), "t").await.unwrap();
    let settings = LeaseSettings { lease_ms: 5_000, ..LeaseSettings::default() };
    let (sender, _receiver) = mpsc::channel(1);
    let error = Election::start(client, settings, place.clock, sender).unwrap_err();
    assert!(error.to_string().contains("5000"), "{error}");
}

#[test]
fn identities_differ_between_processes_of_one_host() {
    let (first, second) = (identity(), identity());
    assert_ne!(first, second);
    assert_eq!(first.rsplit_once('_').unwrap().0, second.rsplit_once('_').unwrap().0);
}
