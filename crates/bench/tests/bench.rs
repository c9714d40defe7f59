//! Benchmarks in simulated time, at small sizes: what they count is what happens, and it stays
//! close to the least that is possible.

use bench::*;

#[test]
fn a_hundred_services_take_the_fewest_writes_under_all_terms() {
    for terms in Terms::ALL {
        let row = converge(100, terms, &mut |_| ()).expect("they are programmed");
        assert_eq!((row.calls.writes, row.demand.writes()), (102, 102), "{row:?}");
        assert_eq!(row.calls.refused, 0);
        assert!(row.half_ms <= row.time_ms && row.time_ms >= row.floor_ms(), "{row:?}");
    }
}

#[test]
fn ten_services_take_the_longest_chain_and_nothing_more() {
    let row = converge(10, Terms::Latency, &mut |_| ()).expect("they are programmed");
    // Public IP, load balancer, security group: a write, a second, a poll and a look each.
    assert_eq!((row.time_ms, row.floor_ms()), (4_800, 4_800));
    assert_eq!((row.calls.writes, row.calls.reads), (12, 24));
}

#[test]
fn progress_ends_with_all_of_them() {
    let mut last = None;
    converge(10, Terms::Latency, &mut |progress| last = Some(progress)).expect("programmed");
    let last = last.expect("something was said");
    assert_eq!((last.done, last.of), (10, 10));
}

#[test]
fn a_node_costs_the_same_whatever_the_number_of_services() {
    let [added, removed] = node_changes(30, Pools::NodeIp, &mut |_| ()).expect("it comes to rest");
    for row in [&added, &removed] {
        assert_eq!((row.calls.writes, row.calls.reads, row.time_ms), (1, 2, 1_600), "{row:?}");
        assert_eq!(row.floor_ms(), 1_600);
    }
    let [added, removed] =
        node_changes(30, Pools::NodeIpConfiguration, &mut |_| ()).expect("it comes to rest");
    for row in [&added, &removed] {
        assert_eq!((row.calls.writes, row.time_ms), (1, row.floor_ms()), "{row:?}");
    }
}

#[test]
fn a_small_container_load_balancer_keeps_to_its_floor() {
    let size = ContainerSize { services: 10, pods: 20, nodes: 20 };
    let rows = container(size, &mut |_| ()).expect("it comes to rest");
    let found: Vec<(&str, u64, u64)> =
        rows.iter().map(|row| (row.phase, row.time_ms, row.floor_ms)).collect();
    let expected = [
        ("created", 800, 800),
        ("one Pod less", 200, 200),
        ("half of the Pods gone", 200, 200),
        ("deleted", 1_000, 800),
    ];
    assert_eq!(found, expected);
    let writes: Vec<(u64, u64)> = rows.iter().map(|r| (r.calls.writes, r.least_writes)).collect();
    assert_eq!(writes, [(22, 22), (1, 1), (1, 1), (23, 22)]);
}

/// What stands in a Service is read when it arrives and when its own object changes, and not when
/// others change.
#[test]
fn a_service_of_187_kb_is_read_as_often_as_a_plain_one() {
    let reads = |guest| {
        let clock = || std::time::Duration::ZERO;
        let row = arrival(20, guest, 1, clock, &mut |_| ()).expect("it comes to rest");
        (row.arrival.reads, row.change.reads)
    };
    let all: Vec<(u64, u64)> = Guest::ALL.into_iter().map(reads).collect();
    assert_eq!(all, [(1, 1), (1, 1), (1, 1)]);
}
