//! Every row of the annotation reference has a value that owners may draw, and takes it.

use crate::support::*;
use plan::ask::annotation::{PORT, PREFIX, TABLE, full};
use serde_json::json;
use sim::actor::values::{NAME, WRONG, values};

/// A Service with this annotation and what it needs beside it; whether it is refused.
fn is_refused(key: &str, value: &str) -> bool {
    let internal = key.contains("internal-subnet");
    let several = key == "azure-load-balancer-configurations";
    let config = match several {
        true => json!({"multipleStandardLoadBalancerConfigurations": [
            {"name": "kubernetes", "primaryVMSet": "vmss"},
            {"name": "lb2", "primaryVMSet": "vmss2"}]}),
        false => json!({}),
    };
    let mut lab = laboratory(&config);
    lab.azure.seed(sim::scene::objects::estate());
    lab.azure.seed(sim::scene::objects::what_annotations_name("Standard"));
    let key = full(&key.replace(PORT, "80"));
    let mut annotations = json!({});
    if internal || value.starts_with("10.22") {
        annotations[format!("{PREFIX}azure-load-balancer-internal")] = json!("true");
    }
    if value.starts_with("10.225") {
        annotations[format!("{PREFIX}azure-load-balancer-internal-subnet")] = json!("apps");
    }
    if value == "byo-pip4" {
        annotations[format!("{PREFIX}azure-load-balancer-resource-group")] = json!("pip-rg");
    }
    annotations[key] = json!(value.replace(NAME, "http"));
    let mut service = service(0);
    service["metadata"]["annotations"] = annotations;
    create(&mut lab, service);
    lab.settle(100_000);
    lab.controller().report().services.values().any(|service| {
        let mut findings = service.findings.iter();
        findings.any(|finding| finding.severity == model::report::Severity::Refusal)
    })
}

#[test]
fn every_row_takes_a_value_that_is_drawn() {
    for row in TABLE {
        let drawn = values(row, 2);
        assert!(!drawn.is_empty(), "{}", row.key);
        // A Private Link Service needs pools of NICs, which this cluster has not.
        let linked = row.key == "azure-pls-create";
        let taken = drawn.iter().find(|value| !is_refused(row.key, value));
        assert!(taken.is_some() || linked, "{}: {drawn:?}", row.key);
    }
}

#[test]
fn a_wrong_value_refuses_where_the_reference_says_so() {
    let mut refused = 0;
    for row in TABLE.iter().filter(|row| row.error.starts_with("the Service is refused")) {
        refused += usize::from(is_refused(row.key, WRONG));
    }
    // Others count only beside an annotation that is not there.
    assert!(refused >= 15, "{refused}");
}
