//! What can be said of annotations from the table alone.

use super::findings::{
    ANNOTATION_IGNORED, INVALID_BOOLEAN, SHARED_RULES_ALWAYS_ON, UNKNOWN_ANNOTATION, UNKNOWN_PORT,
};
use super::reader::Reader;
use crate::ask::annotation::{self, Annotation, Kind};
use model::Exposure;

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
            unknown(r, key);
            continue;
        };
        flag(r, found.annotation, key);
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
pub(super) fn unknown(r: &mut Reader<'_>, key: &str) {
    // To look for what was meant is the dearest part of reading.
    if !annotation::is_ours(key) || r.only_counts(&UNKNOWN_ANNOTATION) {
        return;
    }
    let whole = annotation::full(key);
    match annotation::suggestion(key) {
        Some(meant) => {
            let message = format!("unknown annotation; did you mean {}?", annotation::full(&meant));
            r.find_with(&UNKNOWN_ANNOTATION, &whole, "", &message);
        }
        None => r.find(&UNKNOWN_ANNOTATION, key, ""),
    }
}

/// Notes a flag that counts as false and says something else.
pub(super) fn flag(r: &mut Reader<'_>, entry: &Annotation, key: &str) {
    let (Some(truth), Some(value)) = (entry.truth(r.policy.sku), r.whole(key)) else { return };
    let says_false = ["", "false"].iter().any(|word| value.trim().eq_ignore_ascii_case(word));
    if !says_false && !truth.is_true(value) {
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
    let idle = match entry.kind {
        Kind::Flag(truth) => !r.is_true(key, truth),
        Kind::Text => value.is_empty(),
    };
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
    let (sku, scope) = (annotation::sku_name(r.policy.sku), entry.scope());
    let message =
        format!("{{value}} has no effect on this {kind} {sku} load balancer; only used on {scope}");
    r.find_with(&ANNOTATION_IGNORED, &annotation::full(key), value, &message);
}
