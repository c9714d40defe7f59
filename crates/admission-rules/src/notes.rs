//! What a Service's owner should be told of, though it is planned.

use super::Validation;
use super::cel::{quote, says_true};
use model::Policy;
use model::policy::BalancerSku;
use plan::ask::annotation::{Annotation, CONFIGURATIONS, OWN, PORT, PREFIX, TABLE, Truth};
use plan::ask::findings::{INVALID_BOOLEAN, UNKNOWN_ANNOTATION};

/// A port number, as it is written in keys: without a leading zero.
const NUMBER: &str =
    "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

pub fn validations(policy: &Policy) -> Vec<Validation> {
    let (plain, ported) = keys(|_| true);
    let known = format!(
        "variables.a.all(k, !k.startsWith('{PREFIX}azure-') && !k.startsWith('{PREFIX}port_') \
         && !k.startsWith('{OWN}') || k in {plain} || \
         k.lowerAscii() == '{PREFIX}{CONFIGURATIONS}' || {ported})"
    );
    // On the container load balancer flags that do nothing are noted as such.
    let counts = |entry: &Annotation| match policy.sku {
        BalancerSku::Service => entry.works_on(BalancerSku::Service),
        BalancerSku::Basic | BalancerSku::Standard => true,
    };
    let each = Truth::ALL.map(|truth| {
        let (plain, ported) = keys(|entry| entry.truth(policy.sku) == Some(truth) && counts(entry));
        format!("(!(k in {plain} || {ported}) || {})", says_true("variables.a[k]", truth))
    });
    let flags = format!(
        "variables.a.all(k, variables.a[k].trim().lowerAscii() in ['', 'false'] || ({}))",
        each.join(" && ")
    );
    let key = "metadata.annotations";
    vec![
        Validation::about(key, &UNKNOWN_ANNOTATION, known),
        Validation::about(key, &INVALID_BOOLEAN, flags),
    ]
}

/// The keys as a list, and a condition that is true of `k` where it is one of a port.
fn keys(counts: impl Fn(&Annotation) -> bool) -> (String, String) {
    let counted: Vec<&Annotation> = TABLE.iter().filter(|entry| counts(entry)).collect();
    let plain: Vec<String> = counted
        .iter()
        .filter(|entry| !entry.key.contains(PORT))
        .map(|entry| quote(&entry.full_key()))
        .collect();
    let rests: Vec<&str> =
        counted.iter().filter_map(|entry| entry.key.strip_prefix("port_{port}_")).collect();
    let ported = match rests.is_empty() {
        true => "false".to_owned(),
        false => {
            let host = PREFIX.replace('.', "[.]");
            let pattern = format!("^{host}port_{NUMBER}_({})$", rests.join("|"));
            format!("k.matches({})", quote(&pattern))
        }
    };
    (format!("[{}]", plain.join(", ")), ported)
}
