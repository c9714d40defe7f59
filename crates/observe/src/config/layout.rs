//! Which load balancers a cluster has.

use super::error::{allowed, clash, missing};
use super::fields::Fields;
use model::policy::{
    BalancerSku, Layout, LoadBalancerConfig, Operator, Placement, PoolKind, Requirement, Selector,
};
use serde_json::Value;
use std::sync::Arc;

const SEVERAL: &str = "multipleStandardLoadBalancerConfigurations";
const PER_SET: &str = "enableMultipleStandardLoadBalancers";
const OPERATORS: &str = "In, NotIn, Exists or DoesNotExist";
const SHARED: &str = "nodepoolsWithoutDedicatedSLB";

pub(super) fn read(
    fields: &mut Fields,
    cluster: &str,
    sku: BalancerSku,
    pools: PoolKind,
) -> Layout {
    let several = fields.each(SEVERAL, read_config);
    let per_set = fields.flag(PER_SET) == Some(true);
    let without_own = fields.list(SHARED);
    let has_per_set = per_set || sku == BalancerSku::Basic;
    // The Go cloud provider never heeded it on Basic load balancers.
    if without_own.is_some() && !per_set {
        fields.warn(&format!("{SHARED} has no effect without {PER_SET}: true"));
    }
    if !several.is_empty() && sku != BalancerSku::Standard {
        fields.error(clash(&format!("{SEVERAL} goes only with loadBalancerSku: standard")));
    }
    if !several.is_empty() && per_set {
        fields.error(clash(&format!("{SEVERAL} and {PER_SET}: true cannot both be set")));
    }
    if per_set && sku == BalancerSku::Service {
        fields.error(clash(&format!("{PER_SET}: true goes only with loadBalancerSku: standard")));
    }
    if !several.is_empty() {
        check_several(fields, &several, cluster, pools);
    }
    match sku {
        BalancerSku::Service => Layout::PerService,
        _ if !several.is_empty() => Layout::Several(several),
        _ if has_per_set => {
            let without_own = without_own.filter(|_| per_set).unwrap_or_default();
            Layout::PerNodeSet { without_own }
        }
        _ => Layout::Single,
    }
}

fn read_config(fields: &mut Fields) -> LoadBalancerConfig {
    // What the Go provider keeps track of in the same struct.
    fields.take("activeServices");
    fields.take("activeNodes");
    LoadBalancerConfig {
        name: Arc::from(fields.required("name", "the load balancer's name")),
        placement: match fields.flag("allowServicePlacement") {
            Some(false) => Placement::Closed,
            _ => Placement::Allowed,
        },
        primary_set: Arc::from(fields.required("primaryVMSet", "the nodes that belong to it")),
        services: selector(fields, "serviceLabelSelector"),
        namespaces: selector(fields, "serviceNamespaceSelector"),
        // An empty one counts for none, as for the Go cloud provider; those above match everything.
        nodes: selector(fields, "nodeSelector").filter(|nodes| *nodes != Selector::default()),
    }
}

fn check_several(
    fields: &mut Fields,
    several: &[LoadBalancerConfig],
    cluster: &str,
    pools: PoolKind,
) {
    if pools == PoolKind::NodeNic {
        fields.error(clash(&format!(
            "{SEVERAL} needs `loadBalancerBackendPoolConfigurationType: nodeIP`"
        )));
    }
    for (i, config) in several.iter().enumerate() {
        let before = &several[..i];
        let key = |field: &str| format!("{SEVERAL}[{i}].{field}");
        let same_name = |c: &LoadBalancerConfig| c.name.eq_ignore_ascii_case(&config.name);
        if !config.name.is_empty() && before.iter().any(same_name) {
            fields.error(allowed(&key("name"), &config.name, "a name that no other one has"));
        }
        let set = &config.primary_set;
        let same_set = |c: &LoadBalancerConfig| c.primary_set.eq_ignore_ascii_case(set);
        if !set.is_empty() && before.iter().any(same_set) {
            fields.error(allowed(&key("primaryVMSet"), set, "a set that no other one has"));
        }
    }
    if !several.iter().any(|c| c.name.eq_ignore_ascii_case(cluster)) {
        fields.error(missing(
            &format!("{SEVERAL}[].name {cluster:?}"),
            "one load balancer has to bear the cluster's name",
        ));
    }
}

fn selector(fields: &mut Fields, key: &str) -> Option<Selector> {
    let value = fields.take(key)?;
    fields.inner(key, value, |inner| Selector {
        labels: labels(inner),
        expressions: inner.each("matchExpressions", requirement).into_iter().flatten().collect(),
    })
}

fn labels(fields: &mut Fields) -> std::collections::BTreeMap<Arc<str>, Arc<str>> {
    let map = match fields.take("matchLabels") {
        None => return Default::default(),
        Some(Value::Object(map)) => map,
        Some(other) => {
            fields.refuse("matchLabels", &other, "an object of labels");
            return Default::default();
        }
    };
    let mut found = std::collections::BTreeMap::new();
    for (key, value) in map {
        match value.as_str() {
            Some(text) => {
                found.insert(Arc::from(key), Arc::from(text));
            }
            None => fields.refuse(&format!("matchLabels.{key}"), &value, "text"),
        }
    }
    found
}

fn requirement(fields: &mut Fields) -> Option<Requirement> {
    let key = fields.required("key", "a label's key");
    let values = fields.list("values").unwrap_or_default();
    let operator = match fields.required("operator", OPERATORS).as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "" => return None,
        other => {
            fields.error(allowed("operator", other, OPERATORS));
            return None;
        }
    };
    let wants_values = matches!(operator, Operator::In | Operator::NotIn);
    if wants_values && values.is_empty() {
        fields.error(missing("values", "In and NotIn compare with them"));
    }
    if !wants_values && !values.is_empty() {
        fields.error(clash("Exists and DoesNotExist take no values"));
    }
    Some(Requirement { key: Arc::from(key), operator, values })
}
