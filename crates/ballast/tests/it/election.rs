//! The production election in time that stands still and jumps from timer to timer: its bounds are
//! exact and do not depend on how busy the machine is. The simulator's lease is held to the same.

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::{Event, Leadership};
use edge::clock::Clock;
use edge::lease::{Election, LeaseSettings};
use jiff::Timestamp;
use kube_emulator::{Method, ObjectRef, Store, StoreOptions};
use serde_json::Value;
use sim::life::Ending;
use sim::process::Hold;
use sim::scene::{Layout, Scene, objects};
use sim::stage::Stage;
use sim::swarm::Pace;
use sim::weather::Weather;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// A sleep ends up to a millisecond late, and the clock counts whole ones.
const ROUNDING_MS: u64 = 3;

/// The API server: the emulator's store, without a socket.
#[derive(Clone)]
struct Server {
    store: Arc<Mutex<Store>>,
    clock: Clock,
    /// How long a call takes; half of it before it takes effect.
    call_ms: u64,
}

/// The way of one process to it.
#[derive(Clone)]
struct Line {
    server: Server,
    cut: Arc<AtomicBool>,
}

async fn answer(State(line): State<Line>, request: Request) -> Response {
    let Server { store, clock, call_ms } = line.server;
    sleep(Duration::from_millis(call_ms / 2)).await;
    if line.cut.load(Ordering::SeqCst) {
        return std::future::pending().await;
    }
    let (parts, body) = request.into_parts();
    let method = Method::parse(parts.method.as_str()).unwrap();
    let mut asked = kube_emulator::Request::new(method, &parts.uri.to_string());
    asked.content_type = "application/json".to_owned();
    asked.body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let answer = store.lock().unwrap().handle(&asked, clock.now_ms());
    sleep(Duration::from_millis(call_ms - call_ms / 2)).await;
    (StatusCode::from_u16(answer.code).unwrap(), answer.bytes()).into_response()
}

/// One that runs for leader.
struct Candidate {
    election: Election,
    events: mpsc::Receiver<Event>,
    cut: Arc<AtomicBool>,
}

impl Candidate {
    fn start(server: &Server, identity: &str) -> Self {
        let cut = Arc::new(AtomicBool::new(false));
        let line = Line { server: server.clone(), cut: Arc::clone(&cut) };
        let router: Router = Router::new().fallback(answer).with_state(line);
        let client = kube::Client::new(router, "default");
        let settings = LeaseSettings { identity: identity.to_owned(), ..LeaseSettings::default() };
        let (sender, events) = mpsc::channel(8);
        let election = Election::start(client, settings, server.clock, sender).unwrap();
        Self { election, events, cut }
    }

    async fn hears(&mut self, wanted: Leadership) {
        let Some(Event::Leadership(told)) = self.events.recv().await else { panic!("no news") };
        assert_eq!(told, wanted);
    }

    /// Nothing of it reaches anybody any more.
    fn cut_off(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }
}

impl Server {
    fn start(call_ms: u64) -> Self {
        let store = Arc::new(Mutex::new(Store::new(StoreOptions::default())));
        Self { store, clock: Clock::start(), call_ms }
    }

    fn lease(&self) -> Arc<Value> {
        let lease = ObjectRef::new("leases", "kube-system", "ballast");
        self.store.lock().unwrap().get(lease).unwrap()
    }

    /// A time in the Lease.
    fn time_ms(&self, field: &str) -> u64 {
        let time: Timestamp = self.lease()["spec"][field].as_str().unwrap().parse().unwrap();
        time.as_millisecond().try_into().unwrap()
    }

    /// Two candidates; the first one leads, and the second one has seen it for a while.
    async fn two(&self, for_ms: u64) -> (Candidate, Candidate) {
        let mut first = Candidate::start(self, "first");
        first.hears(Leadership::Held).await;
        let second = Candidate::start(self, "second");
        sleep(Duration::from_millis(10_000 + for_ms)).await;
        (first, second)
    }
}

/// Whenever in the other's rhythm the release comes, and however long the calls take.
#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_within_a_look_and_three_calls() {
    let limit_ms = LeaseSettings::default().longest_vacancy_ms();
    let mut longest_ms = 0;
    for call_ms in [0, 10, 200, 600] {
        for offset_ms in (0..2_400).step_by(60) {
            let server = Server::start(call_ms);
            let (first, mut second) = server.two(offset_ms).await;
            first.election.release().await;
            let released_ms = server.time_ms("renewTime");
            second.hears(Leadership::Held).await;
            assert_eq!(server.lease()["spec"]["holderIdentity"], "second");
            // The Lease says when it was asked for; it is held when the answer is there.
            let taken_ms = server.clock.now_ms() - released_ms;
            assert!(server.time_ms("acquireTime") >= released_ms);
            let most_ms = limit_ms + 3 * call_ms + ROUNDING_MS;
            assert!(taken_ms <= most_ms, "{taken_ms} ms with calls of {call_ms} ms");
            assert!(taken_ms < 3_010, "{taken_ms} ms with calls of {call_ms} ms");
            longest_ms = longest_ms.max(taken_ms);
            second.election.release().await;
        }
    }
    assert!(longest_ms > 2_000, "the longest was {longest_ms} ms: slow calls cost nothing?");
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leaders_lease_is_taken_when_it_has_run_out() {
    let settings = LeaseSettings::default();
    for call_ms in [0, 10, 200, 600] {
        for offset_ms in (0..2_400).step_by(60) {
            let server = Server::start(call_ms);
            let (first, mut second) = server.two(offset_ms).await;
            first.cut_off();
            let renewed_ms = server.time_ms("renewTime");
            second.hears(Leadership::Held).await;
            let silent_ms = server.time_ms("acquireTime") - renewed_ms;
            let most_ms = settings.longest_silence_ms() + 3 * call_ms + ROUNDING_MS;
            assert!(
                (settings.lease_ms..=most_ms).contains(&silent_ms),
                "{silent_ms} ms with calls of {call_ms} ms"
            );
            assert!(!first.election.held().allows(server.clock.now_ms()));
            second.election.release().await;
        }
    }
}

/// From its last renewal on that is for the renew deadline, to the millisecond.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_may_begin() {
    let settings = LeaseSettings::default();
    let server = Server::start(10);
    let (mut first, mut second) = server.two(0).await;
    first.cut_off();
    let held = first.election.held();
    let deadline_ms = held.deadline_ms();
    let began_ms = deadline_ms - settings.renew_deadline_ms;
    assert!(held.allows(deadline_ms - 1) && !held.allows(deadline_ms));
    first.hears(Leadership::Lost).await;
    // A call that hangs is given up in time for the news.
    let late_ms = server.clock.now_ms() - deadline_ms;
    assert!(late_ms <= settings.renew_deadline_ms / 2, "told {late_ms} ms late");
    second.hears(Leadership::Held).await;
    assert!(server.time_ms("acquireTime") >= began_ms + settings.lease_ms);
}

/// Of several that stand by one takes it, and nobody else writes on.
#[tokio::test(start_paused = true)]
async fn of_several_that_stand_by_one_takes_it() {
    let server = Server::start(20);
    let (first, second) = server.two(0).await;
    let third = Candidate::start(&server, "third");
    sleep(Duration::from_secs(5)).await;
    first.election.release().await;
    sleep(Duration::from_secs(2)).await;
    let now_ms = server.clock.now_ms();
    let leaders = [&second, &third].iter().filter(|c| c.election.held().allows(now_ms)).count();
    assert_eq!(leaders, 1);
    assert_eq!(server.lease()["spec"]["leaseTransitions"], 1, "it changed hands once");
}

fn stage() -> Stage {
    let scene = Scene::plain(Layout::Single, 3, 7);
    let pace = Pace { azure_ms: 50, api_ms: 10, watch_ms: 5, operation_ms: 200 };
    let mut stage = Stage::new(scene, pace, Weather::Fair, 2);
    let now = stage.now_ms;
    stage.kubernetes.create(objects::service("default", 0), now).unwrap();
    stage.follow();
    assert!(stage.settle(30 * 60_000));
    stage
}

/// How long after an end in this way the simulator's other process takes its lease, counted from
/// the release or the last renewal.
fn simulated_ms(ending: Ending, offset_ms: u64) -> u64 {
    let mut stage = stage();
    let from_ms = stage.now_ms + offset_ms;
    stage.advance(from_ms);
    let (_, epoch) = stage.lease.holder.unwrap();
    stage.end(0, ending);
    let from_ms = if ending == Ending::Released { from_ms } else { stage.lease.renewed_ms };
    // Ten milliseconds at a time: nothing before is missed, and no bound is closer.
    while stage.lease.holder != Some((1, epoch)) {
        stage.advance(stage.now_ms + 10);
    }
    stage.now_ms - from_ms
}

/// The simulator's processes run the production rules, over calls that take no longer.
#[test]
fn the_simulated_lease_keeps_the_bounds_of_the_real_one() {
    let settings = LeaseSettings::default();
    let later_ms = 100;
    for offset_ms in (0..2_000).step_by(250) {
        let crashed_ms = simulated_ms(Ending::Crashed, offset_ms);
        let most_ms = settings.longest_silence_ms() + later_ms;
        assert!((settings.lease_ms..=most_ms).contains(&crashed_ms), "{crashed_ms} ms");
        let released_ms = simulated_ms(Ending::Released, offset_ms);
        assert!(released_ms <= settings.longest_vacancy_ms() + later_ms, "{released_ms} ms");
    }
    let stage = stage();
    let leader = &stage.processes[0];
    let Hold::Since(renewed_ms) = leader.hold else { panic!("it leads") };
    assert!(renewed_ms <= stage.lease.renewed_ms, "it counts from before its call");
    assert!(leader.may_write(renewed_ms + settings.renew_deadline_ms - 1));
    assert!(!leader.may_write(renewed_ms + settings.renew_deadline_ms));
}
