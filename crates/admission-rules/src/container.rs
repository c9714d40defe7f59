//! What a Service on the container load balancer must be.

use super::Validation;
use super::cel::{is_true, list, present};
use plan::ask::SOURCES;
use plan::ask::annotation::{INTERNAL, Truth};
use plan::ask::findings::{
    BACKEND_COLLISION, INVALID_BACKEND_PORT, INVALID_FRONTEND_PORT, UNENFORCED_SOURCES,
    UNSUPPORTED_ADDRESS, UNSUPPORTED_AFFINITY, UNSUPPORTED_DUAL_STACK, UNSUPPORTED_INTERNAL,
    UNSUPPORTED_PROTOCOL,
};

pub fn validations() -> Vec<Validation> {
    // A name is known to the Pods only.
    let number = |p: &str| {
        format!(
            "(!has({p}.targetPort) ? {p}.port : type({p}.targetPort) == string ? -1 : \
             {p}.targetPort == 0 ? {p}.port : {p}.targetPort)"
        )
    };
    let (of_p, of_q) = (number("p"), number("q"));
    let all = |condition: &str| format!("variables.ports.all(p, {condition})");
    vec![
        Validation::new(&UNSUPPORTED_INTERNAL, format!("!({})", is_true(INTERNAL, Truth::AnyCase))),
        Validation::new(
            &UNSUPPORTED_AFFINITY,
            "!has(object.spec.sessionAffinity) || object.spec.sessionAffinity != 'ClientIP'".into(),
        ),
        Validation::new(
            &UNSUPPORTED_ADDRESS,
            "!has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP == ''".into(),
        ),
        Validation::new(&UNSUPPORTED_DUAL_STACK, "size(variables.families) < 2".into()),
        Validation::idle_timeout(30),
        Validation::new(&UNSUPPORTED_PROTOCOL, all("p.protocol != 'SCTP'")),
        Validation::new(
            &BACKEND_COLLISION,
            all(&format!(
                "{of_p} == -1 || size(variables.ports.filter(q, q.protocol == p.protocol && \
                 {of_q} == {of_p})) == 1"
            )),
        ),
        Validation::new(&INVALID_FRONTEND_PORT, all("p.port >= 1 && p.port <= 65534")),
        Validation::new(&INVALID_BACKEND_PORT, all(&format!("{of_p} != 0"))),
        Validation::new(&UNENFORCED_SOURCES, is_open()),
    ]
}

/// Whether nothing limits who may connect, or one of the sources is every address. An annotation
/// without an entry admits no source.
fn is_open() -> String {
    let annotated: Vec<String> = SOURCES.iter().map(|key| list(key)).collect();
    let absent: Vec<String> = SOURCES.iter().map(|key| format!("!{}", present(key))).collect();
    let everybody = "(variables.families[0] == 'IPv6' ? '::/0' : '0.0.0.0/0')";
    format!(
        "[variables.fieldRanges + {}].all(s, (size(s) == 0 && {}) || s.exists(e, e in \
         [{everybody}, 'Internet', '*']))",
        annotated.join(" + "),
        absent.join(" && ")
    )
}
