//! Two processes and one lease: who writes, from when, and what becomes of a late write.

use sim::canary::Canary;
use sim::exhaust::{Conditions, SCENARIOS, Scenario, enumerate_pauses, plays, suits};
use sim::life::Ending;
use sim::process::{Hold, LEASE_MS, RENEW_MS, RETRY_MS};
use sim::scene::{LAYOUTS, Layout, Scene, objects};
use sim::stage::Stage;
use sim::swarm::Pace;
use sim::weather::{Script, Weather};

const LIMIT_MS: u64 = 30 * 60_000;

/// Two processes at rest with one Service; the first one leads.
fn two() -> Stage {
    let scene = Scene::plain(Layout::Single, 3, 7);
    let pace = Pace { azure_ms: 50, api_ms: 10, watch_ms: 5, operation_ms: 200 };
    let mut stage = Stage::new(scene, pace, Weather::Fair, 2);
    ask(&mut stage, 0);
    assert!(stage.settle(LIMIT_MS));
    assert_eq!(stage.lease.holder, Some((0, 0)));
    stage
}

fn ask(stage: &mut Stage, slot: u64) {
    let now = stage.now_ms;
    stage.kubernetes.create(objects::service("default", slot), now).expect("a new Service");
    stage.follow();
}

/// When Azure takes the next write.
fn next_write_ms(stage: &mut Stage) -> u64 {
    let before = stage.tally.azure_writes;
    while stage.tally.azure_writes == before {
        let next = stage.now_ms + 1;
        stage.advance(next);
        assert!(stage.breach.is_none(), "{:?}", stage.breach);
    }
    stage.now_ms
}

fn ends_well(stage: &mut Stage) {
    assert!(stage.settle(LIMIT_MS));
    assert!(stage.breach.is_none(), "{:?}", stage.breach);
    assert_eq!(stage.untrue(), Vec::<String>::new());
}

/// Whenever in the other's rhythm the release comes.
#[test]
fn after_a_release_the_other_writes_within_three_seconds() {
    let mut longest = 0;
    for offset in (0..RETRY_MS).step_by(50) {
        let mut stage = two();
        let from = stage.now_ms + offset;
        stage.advance(from);
        ask(&mut stage, 1);
        stage.end(0, Ending::Released);
        let wrote = next_write_ms(&mut stage);
        assert_eq!(stage.lease.holder, Some((1, 0)));
        longest = longest.max(wrote - from);
        ends_well(&mut stage);
    }
    assert!((RETRY_MS / 2..=3_000).contains(&longest), "{longest} ms");
}

/// The old leader stops before the new one may begin, and the new one does not wait longer than
/// the lease and one try, which is spread by a fifth.
#[test]
fn after_a_crash_the_other_leads_when_the_lease_has_run_out() {
    for offset in (0..RETRY_MS).step_by(50) {
        let mut stage = two();
        stage.advance(stage.now_ms + offset);
        ask(&mut stage, 1);
        stage.end(0, Ending::Crashed);
        let renewed = stage.lease.renewed_ms;
        stage.advance(renewed + LEASE_MS - 1);
        assert_eq!(stage.lease.holder, Some((0, 0)), "the lease is still good");
        stage.advance(renewed + LEASE_MS + RETRY_MS + RETRY_MS / 5);
        assert_eq!(stage.lease.holder, Some((1, 0)));
        ends_well(&mut stage);
    }
}

#[test]
fn a_holder_that_stood_still_too_long_does_not_send() {
    let mut stage = two();
    let stood = stage.now_ms;
    let wakes = stood + 60_000;
    stage.processes[0].paused_until = wakes;
    ask(&mut stage, 1);
    stage.advance(wakes - 1);
    assert_eq!(stage.lease.holder, Some((1, 0)));
    let Hold::Since(renewed) = stage.processes[0].hold else { panic!("it knows nothing yet") };
    assert!(renewed + RENEW_MS < wakes && !stage.processes[0].may_write(wakes));
    let writes = stage.tally.azure_writes;
    ends_well(&mut stage);
    stage.advance(stage.now_ms + RETRY_MS);
    assert_eq!(stage.tally.azure_writes, writes, "the other has done it");
    assert_eq!(stage.processes[0].hold, Hold::Not);
}

/// What had left the process arrives; what it had not sent yet dies with it.
#[test]
fn what_a_process_that_stands_still_has_not_sent_is_never_sent_when_it_dies() {
    let mut stood_still = 0;
    for call in 1..=20 {
        let scene = Scene::plain(Layout::Single, 3, 7);
        let pace = Pace { azure_ms: 50, api_ms: 10, watch_ms: 5, operation_ms: 200 };
        let script = Script { pause: Some((call, 60_000)), ..Script::default() };
        let mut stage = Stage::new(scene, pace, Weather::Scripted(script), 1);
        ask(&mut stage, 0);
        stage.advance(stage.now_ms + 30_000);
        stood_still += u64::from(stage.processes[0].paused_until > stage.now_ms);
        stage.end(0, Ending::Crashed);
        let writes = stage.tally.azure_writes;
        stage.advance(stage.now_ms + 120_000);
        assert_eq!(stage.tally.azure_writes, writes, "it stood still at call {call}");
    }
    assert!(stood_still > 10, "{stood_still}");
}

/// Before every write of small scenarios.
#[test]
fn a_write_that_arrives_after_another_took_over_does_no_harm() {
    let (mut tried, mut refused) = (0, 0);
    let mut wrong = Vec::new();
    for (layout, layout_name) in LAYOUTS {
        for scenario in SCENARIOS.iter().copied() {
            let name = scenario.name();
            if !plays(scenario, Conditions::Leaders) || !suits(scenario, layout) {
                continue;
            }
            // The others write by the same code.
            let part = match layout {
                Layout::Single | Layout::Containers => true,
                Layout::Nics => matches!(scenario, Scenario::Create | Scenario::Delete),
                Layout::Several | Layout::PerSet => false,
            };
            if !part {
                continue;
            }
            let pauses = enumerate_pauses(scenario, layout, None);
            tried += pauses.tried;
            refused += pauses.refused;
            wrong.extend(pauses.wrong.iter().map(|w| format!("{layout_name} {name}: {w}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried >= 150, "{tried} writes");
    assert!(refused >= 60, "{refused} late writes were refused");
}

#[test]
fn without_etags_the_same_pauses_do_harm() {
    let canary = Some(Canary::IgnoresIfMatch);
    let pauses = enumerate_pauses(Scenario::Update, Layout::Single, canary);
    assert!(pauses.wrong.iter().any(|w| w.contains("S5")), "{pauses:#?}");
}
