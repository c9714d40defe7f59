//! docs/dev/benchmarks.md has what `ballast bench` gives, checked at the small sizes.

use ballast::command::bench::page::markers;
use ballast::command::bench::simulated;
use bench::ContainerSize;
use std::path::Path;

fn section(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dev/benchmarks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = markers(name);
    let (_, rest) = page.split_once(&begin).unwrap();
    rest.split_once(&end).unwrap().0.to_owned()
}

fn assert_has(section: &str, table: &str) {
    for line in table.lines() {
        assert!(
            section.lines().any(|kept| kept == line),
            "docs/dev/benchmarks.md lacks\n{line}\nrerun ballast bench page; it has\n{section}"
        );
    }
}

#[test]
fn services_created_at_once() {
    let result = simulated::converged(&[10, 100]).unwrap();
    assert_has(&section("converge"), &result.table.markdown());
}

#[test]
fn a_node_more_and_a_node_less() {
    let result = simulated::node_changes(&[100]).unwrap();
    assert_has(&section("nodes"), &result.table.markdown());
}

#[test]
fn a_small_container_load_balancer() {
    let size = ContainerSize { services: 10, pods: 20, nodes: 20 };
    let result = simulated::containers(&[size]).unwrap();
    assert_has(&section("pods"), &result.table.markdown());
}
