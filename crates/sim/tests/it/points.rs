//! A part of the enumeration; all of it is `ballast sim --exhaustive`.

use sim::exhaust::{Scenario, enumerate};
use sim::scene::Layout;

#[test]
fn every_point_of_creating_ends_right() {
    let points = enumerate(Scenario::Create, Layout::Single, 10);
    assert_eq!(points.wrong, Vec::<String>::new());
    assert!(points.crashes >= 30 && points.losses >= 30, "{points:?}");
}

#[test]
fn every_point_of_a_moving_pod_ends_right() {
    let points = enumerate(Scenario::PodMoves, Layout::Containers, 10);
    assert_eq!(points.wrong, Vec::<String>::new());
    assert!(points.all() >= 10, "{points:?}");
}
