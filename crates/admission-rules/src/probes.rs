//! Which ports have probes of their own, and what those must be.

use super::Validation;
use super::cel::{
    NODE_PORT, is_set_of_port, is_whole, of_port, of_port_or_all, present, present_of_port, text,
};
use model::Policy;
use model::policy::{BalancerSku, ClusterProbe};
use plan::ask::findings::{
    INVALID_PROBE_COUNT, INVALID_PROBE_INTERVAL, INVALID_PROBE_PORT, INVALID_REQUEST_PATH,
    PROBE_TOO_SLOW,
};

pub fn validations(policy: &Policy) -> Vec<Validation> {
    let (interval, count) = (interval("n"), count("n"));
    let (interval_ok, count_ok) = (is_interval(&interval), is_count(&count));
    let quick = is_quick(&interval, &count);
    vec![
        Validation::new(&INVALID_PROBE_PORT, format!("variables.probed.all(p, {})", is_port())),
        Validation::new(&INVALID_PROBE_INTERVAL, format!("variables.timed.all(n, {interval_ok})")),
        Validation::new(&INVALID_PROBE_COUNT, format!("variables.timed.all(n, {count_ok})")),
        Validation::new(
            &PROBE_TOO_SLOW,
            format!("variables.timed.all(n, !{interval_ok} || !{count_ok} || {quick})"),
        ),
        Validation::new(
            &INVALID_REQUEST_PATH,
            format!("variables.probed.all(p, {})", is_path(policy)),
        ),
    ]
}

/// The ports whose own probes must be right. The rule of HA ports takes the first probe that can
/// be made: where there is one, the others may be wrong.
pub fn probed(policy: &Policy) -> String {
    let named = named();
    let one = format!(
        "(variables.healthCheck || variables.ports.exists(p, {}) ? [] : \
         variables.ports.filter(p, p.protocol == 'TCP'))",
        can_be_made(policy)
    );
    let each = format!(
        "variables.ports.filter(p, p.protocol == 'TCP' && ({NODE_PORT} || {named}) && !({}) && \
         !({}) && (!variables.healthCheck || {named}))",
        is_set_of_port("p", "no_lb_rule"),
        is_set_of_port("p", "no_probe_rule"),
    );
    let all = format!("(variables.highAvailability ? {one} : {each})");
    match policy.cluster_probe {
        ClusterProbe::Shared { .. } => {
            format!("!variables.local ? [] : {all}")
        }
        ClusterProbe::NodePort => all,
    }
}

/// The numbers under which interval and count must be right: those of ports with probes of their
/// own, the health check node port, and ports that say how often they are probed there.
pub fn timed() -> String {
    let says = ["health-probe_interval", "health-probe_num-of-probe"];
    let says = says.map(|rest| present_of_port("p.port", rest)).join(" || ");
    let apart = format!(
        "variables.ports.filter(p, ({says}) && !({}) && !({}) && (p.protocol != 'TCP' || !({})))",
        is_set_of_port("p", "no_lb_rule"),
        is_set_of_port("p", "no_probe_rule"),
        named()
    );
    format!(
        "variables.probed.map(p, p.port) + (variables.healthCheck ? \
         [object.spec.healthCheckNodePort] + (variables.highAvailability ? [] : \
         {apart}.map(p, p.port)) : [])"
    )
}

/// Whether an annotation says what is probed for the port `p`.
fn named() -> String {
    format!("{} != ''", of_port("p.port", "health-probe_port"))
}

/// Whether the port `p` has a probe that can be made. Without a node port the node as a whole is
/// asked, whatever else is said.
fn can_be_made(policy: &Policy) -> String {
    let timed = format!(
        "[{}].all(i, [{}].all(c, {} && {} && {}))",
        interval("p.port"),
        count("p.port"),
        is_interval("i"),
        is_count("c"),
        is_quick("i", "c")
    );
    format!(
        "p.protocol == 'TCP' && (!({NODE_PORT} || {}) || ({}) && ({}) && {timed})",
        named(),
        is_port(),
        is_path(policy)
    )
}

/// The seconds between two probes; `number` is that of a port.
fn interval(number: &str) -> String {
    let all = "azure-load-balancer-health-probe-interval";
    of_port_or_all(number, "health-probe_interval", all, "'5'")
}

/// How many answers in a row count; `number` is that of a port.
fn count(number: &str) -> String {
    let spelling = "load-balancer-health-probe-num-of-probe";
    let other = format!("({} ? {} : '2')", present(spelling), text(spelling));
    let all = "azure-load-balancer-health-probe-num-of-probe";
    of_port_or_all(number, "health-probe_num-of-probe", all, &other)
}

fn is_interval(value: &str) -> String {
    is_whole(value, 5, u64::from(u32::MAX))
}

fn is_count(value: &str) -> String {
    is_whole(value, 2, u64::from(u32::MAX))
}

/// Whether an interval times a count is below two minutes.
fn is_quick(interval: &str, count: &str) -> String {
    format!("int({interval}) < 120 && int({count}) < 120 && int({interval}) * int({count}) < 120")
}

/// Whether what is probed for the port `p` is a port.
fn is_port() -> String {
    let port = of_port("p.port", "health-probe_port");
    let named = format!("{port}.lowerAscii() in variables.portNames");
    format!("{port} == '' || {} || {named}", is_whole(&port, 1, 65535))
}

/// The names that a probe may have in place of a number, in lower case: those of ports with a node
/// port. They are listed once, not looked for among the ports for each probe.
pub fn port_names() -> &'static str {
    "variables.ports.filter(q, has(q.name) && has(q.nodePort) && q.nodePort > 0).map(q, \
     q.name.lowerAscii())"
}

/// Whether the probe of the port `p` has a path where it needs one.
fn is_path(policy: &Policy) -> String {
    let with_path = match policy.sku {
        BalancerSku::Basic => "['http']",
        BalancerSku::Standard | BalancerSku::Service => "['http', 'https']",
    };
    format!("!({} in {with_path}) || {}.startsWith('/')", protocol(), path())
}

/// The protocol of the probe of the port `p`. The annotation of the port decides where it is there,
/// also with an empty value.
fn protocol() -> String {
    let setting = "health-probe_protocol";
    let (is_there, own) = (present_of_port("p.port", setting), of_port("p.port", setting));
    let all = text("azure-load-balancer-health-probe-protocol");
    format!(
        "({is_there} ? {own} : has(p.appProtocol) && p.appProtocol != '' ? \
         p.appProtocol.trim() : {all}).lowerAscii()"
    )
}

/// The path of the probe of the port `p`.
fn path() -> String {
    let own = of_port("p.port", "health-probe_request-path");
    let all = text("azure-load-balancer-health-probe-request-path");
    format!("({own} != '' ? {own} : {all} != '' ? {all} : '/')")
}
