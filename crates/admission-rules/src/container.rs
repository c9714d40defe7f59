//! What a Service on the container load balancer must be.

use super::Validation;
use super::cel::{is_true, list, present};
use plan::ask::annotation::{INTERNAL, Truth};
use plan::ask::findings::{
    BACKEND_COLLISION, INVALID_BACKEND_PORT, INVALID_FRONTEND_PORT, UNENFORCED_SOURCES,
    UNSUPPORTED_ADDRESS, UNSUPPORTED_AFFINITY, UNSUPPORTED_DUAL_STACK, UNSUPPORTED_INTERNAL,
    UNSUPPORTED_PROTOCOL,
};
use plan::ask::{CORE_RANGES, SOURCES};

/// Target ports that are compared with one another. To compare them all costs twice their number
/// squared, and the API server ends an expression at a cost of 1,000,000 (`PerCallLimit` of
/// k8s.io/apiserver), after a tenth of a second.
pub const COMPARED: usize = 500;

/// Whether the target of the port `p` is a name, whose number only Pods know.
const IS_NAMED: &str = "has(p.targetPort) && type(p.targetPort) == string";
/// The target of the port `p`, if that is no name.
const NUMBER: &str = "(!has(p.targetPort) || p.targetPort == 0 ? p.port : p.targetPort)";

/// The target ports that are numbers, as in `TCP/8080`.
pub fn targets() -> String {
    format!("variables.ports.filter(p, !({IS_NAMED})).map(p, p.protocol + '/' + string({NUMBER}))")
}

pub fn validations() -> Vec<Validation> {
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
            format!(
                "size(variables.targets) > {COMPARED} || variables.targets.all(t, \
                 variables.targets.indexOf(t) == variables.targets.lastIndexOf(t))"
            ),
        ),
        Validation::new(&INVALID_FRONTEND_PORT, all("p.port >= 1 && p.port <= 65534")),
        Validation::new(&INVALID_BACKEND_PORT, all(&format!("({IS_NAMED}) || {NUMBER} != 0"))),
        Validation::new(&UNENFORCED_SOURCES, is_open()),
    ]
}

/// Whether nothing limits who may connect, or one of the sources is every address, and kube-proxy
/// drops none: it heeds the field, else the annotation of Kubernetes. An annotation without an
/// entry admits no source.
fn is_open() -> String {
    let annotated: Vec<String> = SOURCES.iter().map(|key| list(key)).collect();
    let absent: Vec<String> = SOURCES.iter().map(|key| format!("!{}", present(key))).collect();
    let everybody = "(variables.families[0] == 'IPv6' ? '::/0' : '0.0.0.0/0')";
    let open = format!("s.exists(e, e in [{everybody}, 'Internet', '*'])");
    format!(
        "[variables.fieldRanges + {}].all(s, (size(s) == 0 && {}) || {open}) && \
         [size(variables.fieldRanges) > 0 ? variables.fieldRanges : {}].all(s, size(s) == 0 || \
         {open})",
        annotated.join(" + "),
        absent.join(" && "),
        list(CORE_RANGES)
    )
}
