//! A part of the enumeration; all of it is `ballast sim --exhaustive`.

use sim::exhaust::{
    Conditions, Kind, Place, Points, Scenario, Stride, enumerate, places, replay, usual,
};
use sim::fault::Fault;
use sim::scene::Layout;
use sim::weather::{Script, Side};

fn tried(scenario: Scenario, layout: Layout, conditions: Conditions, stride: Stride) -> Points {
    let points = enumerate(Place { scenario, layout, conditions }, stride);
    assert_eq!(points.wrong, Vec::<String>::new());
    points
}

/// Every crash and every loss; of the rest some.
fn crashes(kind: Kind, _: Conditions) -> usize {
    match kind {
        Kind::Crash | Kind::Loss => 1,
        Kind::Swap => 5,
        _ => 0,
    }
}

/// Some of everything.
fn some(kind: Kind, _: Conditions) -> usize {
    if kind == Kind::Second { 499 } else { 47 }
}

/// Every crash, and nothing else.
fn only_crashes(kind: Kind, _: Conditions) -> usize {
    usize::from(kind == Kind::Crash)
}

#[test]
fn every_point_of_creating_ends_right() {
    let points = tried(Scenario::Create, Layout::Single, Conditions::Plain, crashes);
    assert!(points.of(Kind::Crash).tried >= 30 && points.of(Kind::Loss).tried >= 30, "{points:?}");
}

#[test]
fn every_point_of_a_moving_pod_ends_right() {
    let points = tried(Scenario::PodMoves, Layout::Containers, Conditions::Plain, crashes);
    assert!(points.tried() >= 10, "{points:?}");
}

/// Services move to load balancers over nodes and back.
#[test]
fn every_crash_of_a_migration_ends_right() {
    let points = tried(Scenario::Migration, Layout::Containers, Conditions::Plain, only_crashes);
    let crashes = points.of(Kind::Crash);
    assert!(crashes.all >= 30 && crashes.tried == crashes.all, "{points:?}");
}

#[test]
fn some_points_of_every_kind_end_right() {
    for (scenario, layout, conditions) in [
        (Scenario::Create, Layout::Single, Conditions::Slow),
        (Scenario::Drain, Layout::Single, Conditions::Plain),
        (Scenario::SecondFamily, Layout::Several, Conditions::Paged),
        (Scenario::PrivateLink, Layout::Nics, Conditions::Plain),
        (Scenario::Egress, Layout::Containers, Conditions::Leaders),
        (Scenario::Gate, Layout::Containers, Conditions::Plain),
        (Scenario::SharedPublic, Layout::Single, Conditions::Leaders),
        (Scenario::Migration, Layout::Containers, Conditions::Paged),
    ] {
        let points = tried(scenario, layout, conditions, some);
        assert!(points.tried() >= 5, "{scenario:?}: {points:?}");
        assert!(points.first().all > points.first().tried, "{scenario:?}: {points:?}");
    }
}

/// A point is chosen by its number and its place alone.
#[test]
fn the_same_points_come_to_the_same() {
    let place =
        Place { scenario: Scenario::Nodes, layout: Layout::Nics, conditions: Conditions::Paged };
    assert_eq!(enumerate(place, some), enumerate(place, some));
    assert!(places().contains(&place) && usual(Kind::Crash, Conditions::Plain) > 0);
}

/// An operation of an earlier life runs on the scale set. The new process is refused, reads the
/// scale set as it wants it, and has nothing to follow.
#[test]
fn an_operation_of_an_earlier_life_is_not_followed() {
    let place =
        Place { scenario: Scenario::Delete, layout: Layout::Nics, conditions: Conditions::Plain };
    let script = Script {
        fault: Some((47, Fault::Stuck, 240_000)),
        second_crash: Some((222, Side::Before)),
        ..Script::default()
    };
    let (breach, trace) = replay(place, script);
    assert!(breach.is_none(), "{breach:?}");
    assert!(trace.iter().any(|line| line.contains("AnotherOperationInProgress")));
}

/// The lists that a new process reads first lack what was made a second before, and load balancers
/// are read again before public IPs are: what status tells stays open meanwhile.
#[test]
fn what_status_tells_stays_open_until_lists_are_certain() {
    let place = Place {
        scenario: Scenario::Config,
        layout: Layout::Several,
        conditions: Conditions::Paged,
    };
    let script = Script { lose: Some((47, Side::Before)), ..Script::default() };
    let (breach, trace) = replay(place, script);
    assert!(breach.is_none(), "{breach:?}");
    let restarted = |line: &&String| !line.contains("restarted with another cloud config");
    let mut later = trace.iter().skip_while(restarted);
    let group = later.find(|line| line.contains("rule k8s-azure-lb_allow")).expect("it is written");
    assert!(group.contains("at 20.0.0.1") && group.contains("at 20.0.0.2"), "{group}");
}
