//! What can be said of annotations from the table alone.

use super::reader::Reader;
use super::rules::{
    ANNOTATION_IGNORED, INVALID_BOOLEAN, SHARED_RULES_ALWAYS_ON, UNKNOWN_ANNOTATION, UNKNOWN_PORT,
};
use crate::annotation::{self, Annotation, Kind, PREFIX};
use model::Exposure;
use model::policy::BalancerSku;

/// Keys whose readers say more exactly when they do not count.
const SPOKEN_FOR: &[&str] = &[
    "azure-load-balancer-configurations",
    "azure-pls-create",
    "azure-pls-proxy-protocol",
    "azure-shared-securityrule",
];

/// Checks every annotation against the table.
pub(super) fn check(r: &mut Reader<'_>, exposure: Exposure) {
    let all: Vec<(&str, &str)> = r.annotations.iter().map(|(k, v)| (*k, *v)).collect();
    for (key, value) in all {
        let Some(found) = annotation::find(key) else {
            unknown(r, key, value);
            continue;
        };
        flag(r, found.annotation, key, value);
        if let Some(port) = found.port {
            number(r, port, key, value);
        }
        reach(r, found.annotation, key, value, exposure);
    }
    if let Some(value) = r.raw("azure-shared-securityrule") {
        r.find(&SHARED_RULES_ALWAYS_ON, "azure-shared-securityrule", value);
    }
}

/// Notes a key that looks like ours and is not.
pub(super) fn unknown(r: &mut Reader<'_>, key: &str, value: &str) {
    // To look for what was meant is the dearest part of reading.
    if !annotation::is_ours(key) || r.only_counts(&UNKNOWN_ANNOTATION) {
        return;
    }
    let whole = format!("{PREFIX}{key}");
    match annotation::suggestion(key) {
        Some(meant) => {
            let allowed = format!("{}; did you mean {PREFIX}{meant}?", UNKNOWN_ANNOTATION.allowed);
            r.find_with(&UNKNOWN_ANNOTATION, &whole, value, &allowed);
        }
        None => r.find(&UNKNOWN_ANNOTATION, key, value),
    }
}

/// Notes a flag that is neither true nor false.
pub(super) fn flag(r: &mut Reader<'_>, entry: &Annotation, key: &str, value: &str) {
    let known = ["", "true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word));
    if entry.kind == Kind::Flag && !known {
        r.find(&INVALID_BOOLEAN, key, value);
    }
}

fn number(r: &mut Reader<'_>, port: u16, key: &str, value: &str) {
    let known = r.ports.contains_key(&port) || r.service.health_check_node_port == Some(port);
    if !known {
        r.find(&UNKNOWN_PORT, key, value);
    }
}

fn reach(r: &mut Reader<'_>, entry: &Annotation, key: &str, value: &str, exposure: Exposure) {
    let idle =
        value.is_empty() || (entry.kind == Kind::Flag && !value.eq_ignore_ascii_case("true"));
    // Whether a Private Link Service is wanted on Basic is refused, not ignored.
    if idle || SPOKEN_FOR.contains(&entry.key) || entry.key.starts_with("azure-pls-") {
        return;
    }
    if entry.reach.covers(exposure) && entry.works_on(r.policy.sku) {
        return;
    }
    let kind = match exposure {
        Exposure::Public => "public",
        Exposure::Internal => "internal",
    };
    let sku = match r.policy.sku {
        BalancerSku::Basic => "basic",
        BalancerSku::Standard => "standard",
        BalancerSku::Service => "container",
    };
    let scope = entry.scope();
    let allowed = format!("nothing on this {kind} {sku} load balancer: only counts on {scope}");
    r.find_with(&ANNOTATION_IGNORED, &format!("{PREFIX}{key}"), value, &allowed);
}
