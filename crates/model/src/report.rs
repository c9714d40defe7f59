//! Who waits on what, and what is wrong with whom.

use crate::drain::Drainer;
use crate::id::{ResourceId, ServiceName, ServiceUid};
use crate::obstacle::{Obstacle, ObstacleKind, Subject};
use crate::world::Need;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// What planning has to say beside the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// By Service.
    pub services: BTreeMap<ServiceUid, Arc<ServiceReport>>,
    /// What is wrong with egress Pods, by namespace and name.
    pub pods: BTreeMap<ServiceName, Vec<Finding>>,
    /// What has to be read before planning can go on.
    pub needs: BTreeSet<Need>,
    /// What is wrong with the whole, not with one Service.
    pub findings: Vec<Finding>,
    /// What is in our pools and whose nodes are going or gone: it drains before it is taken out.
    /// `None` where pools were not looked at, because something has to be read first.
    pub draining: Option<BTreeSet<Drainer>>,
    /// Addresses that EndpointSlices of several namespaces list, each with the namespace that holds
    /// it, to be recorded.
    pub holders: BTreeMap<IpAddr, Arc<str>>,
    /// Calls that fail or are not answered, and what they hold up. Planning knows none: the
    /// controller adds them. Refusals and holds are not among them; [`Report::in_the_way`] has all.
    pub obstacles: Vec<Obstacle>,
}

impl Report {
    /// Everything that stands in the way: calls that fail, then what is refused or held back.
    pub fn in_the_way(&self) -> impl Iterator<Item = Obstacle> {
        let services = self.services.iter();
        let of_services = services.flat_map(|(uid, service)| {
            let about = Subject::Service(uid.clone());
            frozen(&service.findings).map(move |f| refusal(about.clone(), Some(uid), f))
        });
        let whole = frozen(&self.findings).map(|f| refusal(Subject::Cluster, None, f));
        self.obstacles.iter().cloned().chain(whole).chain(of_services)
    }

    /// Whether nothing stands in the way of anything and all that is needed has been read.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.needs.is_empty() && self.in_the_way().next().is_none()
    }
}

/// Findings on account of which nothing is planned.
fn frozen(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.severity.freezes())
}

fn refusal(about: Subject, uid: Option<&ServiceUid>, finding: &Finding) -> Obstacle {
    Obstacle {
        about,
        services: uid.cloned().into_iter().collect(),
        kind: match finding.severity {
            Severity::Hold => ObstacleKind::Held,
            Severity::Note | Severity::Refusal => ObstacleKind::Refused,
        },
        operation: Arc::clone(&finding.key),
        code: Arc::from(finding.rule),
        message: Arc::from(finding.to_string()),
        attempt: 0,
        since_ms: 0,
        next_ms: None,
    }
}

/// What planning says about one Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceReport {
    /// Namespace and name.
    pub name: ServiceName,
    /// Name of its load balancer, where it is placed.
    pub balancer: Option<Arc<str>>,
    /// Addresses it has in Azure, in the order of its status.
    pub addresses: Vec<Arc<str>>,
    /// How far it is.
    pub state: State,
    /// What it waits on.
    pub waits: Vec<Wait>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// How far a Service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum State {
    /// Azure is as it asks, and its status says so.
    Programmed,
    /// Something is still to be written or read.
    Waiting,
    /// It asks for something impossible, and nothing of it is in Azure.
    Refused,
    /// It asks for something impossible; what it had stays, and serves as before.
    RefusedServing,
    /// Its owner holds it back by an annotation: what it has stays, and serves as before.
    Held,
    /// Azure rejects what has to be written for it.
    Rejected,
    /// It is being taken out of Azure.
    Removing,
}

impl State {
    /// Every state, those first that need attention.
    pub const ALL: [Self; 7] = [
        Self::Refused,
        Self::Rejected,
        Self::RefusedServing,
        Self::Held,
        Self::Waiting,
        Self::Removing,
        Self::Programmed,
    ];

    /// The state as a label of metrics, in JSON and in addresses of pages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Programmed => "programmed",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::RefusedServing => "refused_serving",
            Self::Held => "held",
            Self::Rejected => "rejected",
            Self::Removing => "removing",
        }
    }

    /// The state in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::RefusedServing => "refused, serving as before",
            Self::Held => "held by its owner",
            Self::Rejected => "rejected by Azure",
            state => state.word(),
        }
    }

    /// Whether the Service asks for something impossible.
    #[must_use]
    pub fn is_refused(self) -> bool {
        matches!(self, Self::Refused | Self::RefusedServing)
    }

    /// Whether nothing new is planned for the Service until it is changed.
    #[must_use]
    pub fn is_frozen(self) -> bool {
        self.is_refused() || self == Self::Held
    }
}

/// What something waits on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Wait {
    /// Azure has to be read.
    Reading(Need),
    /// Kubernetes has to be read, or Azure again: what is known may be older than what another
    /// process did.
    Listing,
    /// The finalizer has to be on the Service first.
    Finalizer,
    /// Another resource has to be written first.
    Resource {
        /// Which.
        id: ResourceId,
        /// What must be true of it.
        until: Until,
    },
    /// Other Services are about to join the same write; it goes without them if they take long.
    Gathering {
        /// How many.
        others: usize,
    },
    /// It is set aside after a refusal.
    SetAside {
        /// Why.
        reason: Arc<str>,
        /// When it is tried again, in milliseconds of the controller's clock.
        until_ms: Option<u64>,
    },
    /// Azure lets no more calls through for now.
    Budget {
        /// Which calls.
        limit: &'static str,
        /// When it is its turn, as far as can be told, in milliseconds of the controller's clock.
        until_ms: u64,
    },
    /// This resource is being written.
    Writing(ResourceId),
    /// Its status is being written.
    Status,
    /// Its addresses have to be in the ledger before they are opened.
    Ledger,
    /// Its Pods have to say which numbers its target ports have: it has no port without a name.
    Pods,
}

/// What must become true of a resource that something waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Until {
    /// It exists and has an address.
    Ready,
    /// It no longer refers to what is to be changed.
    Released,
    /// It is as desired.
    Written,
    /// It is gone.
    Gone,
}

/// Every [`Wait::reason`].
pub const WAIT_REASONS: [&str; 11] = [
    "reading",
    "listing",
    "finalizer",
    "resource",
    "gathering",
    "rejected",
    "budget",
    "writing",
    "status",
    "ledger",
    "pods",
];

impl Wait {
    /// The kind of thing that is waited for, in a word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Reading(_) => "reading",
            Self::Listing => "listing",
            Self::Finalizer => "finalizer",
            Self::Resource { .. } => "resource",
            Self::Gathering { .. } => "gathering",
            Self::SetAside { .. } => "rejected",
            Self::Budget { .. } => "budget",
            Self::Writing(_) => "writing",
            Self::Status => "status",
            Self::Ledger => "ledger",
            Self::Pods => "pods",
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reading(need) => write!(f, "reading {need}"),
            Self::Listing => f.write_str("lists that are complete and new enough"),
            Self::Finalizer => f.write_str("the finalizer to be written"),
            Self::Resource { id, until } => write!(f, "{} {until}", id.short()),
            Self::Gathering { others } => write!(f, "{others} more to join the same write"),
            Self::SetAside { reason, .. } => write!(f, "the next try after: {reason}"),
            Self::Budget { limit, .. } => write!(f, "the budget of {limit}"),
            Self::Writing(id) => write!(f, "the write of {}", id.short()),
            Self::Status => f.write_str("its status to be written"),
            Self::Ledger => f.write_str("its addresses to be recorded"),
            Self::Pods => f.write_str("its Pods to agree on the number of a target port"),
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "to be ready",
            Self::Released => "to drop its reference",
            Self::Written => "to be written",
            Self::Gone => "to be gone",
        })
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Balancers => f.write_str("load balancers"),
            Self::PublicIps(group) => write!(f, "public IPs of {group}"),
            Self::SecurityGroup => f.write_str("the security group"),
            Self::Subnet(id) => write!(f, "subnet {}", id.name()),
            Self::Zones => f.write_str("availability zones"),
            Self::PrivateLinks(group) => write!(f, "Private Link Services of {group}"),
            Self::ScaleSets => f.write_str("scale sets"),
            Self::ScaleSetVms(id) => write!(f, "instances of scale set {}", id.name()),
            Self::NetworkInterfaces => f.write_str("network interfaces"),
            Self::VirtualMachines => f.write_str("virtual machines"),
            Self::NatGateways => f.write_str("NAT gateways"),
            Self::GatewayServices => f.write_str("services of the Service Gateway"),
            Self::GatewayLocations => f.write_str("addresses of the Service Gateway"),
        }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Severity {
    /// The Service is planned; its owner should know.
    Note,
    /// The Service's owner holds it back by an annotation: nothing is planned for it until then.
    Hold,
    /// The Service is not planned until it changes.
    Refusal,
}

impl Severity {
    /// Whether nothing new is planned for the Service: what it has stays as it is.
    #[must_use]
    pub fn freezes(self) -> bool {
        self != Self::Note
    }
}

/// Most bytes of a value that a [`Finding`] quotes, and with it Events, conditions and the log:
/// room for every name and resource id that Azure takes.
pub const QUOTED: usize = 400;

/// A text as it is quoted: whole up to [`QUOTED`] bytes, else its beginning and its length.
#[must_use]
pub fn quoted(text: &str) -> Arc<str> {
    if text.len() <= QUOTED {
        return Arc::from(text);
    }
    let beginning = &text[..text.floor_char_boundary(QUOTED)];
    Arc::from(format!("{beginning}… ({} bytes)", text.len()))
}

/// Something wrong with a Service (or with the whole), for its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A stable short name of the rule that was broken, as in `InvalidIdleTimeout`.
    pub rule: &'static str,
    /// The annotation, field or config key.
    pub key: Arc<str>,
    /// Its value; empty where the value explains nothing.
    pub value: Arc<str>,
    /// What is wrong and, after a semicolon, what is allowed, as in "must be a whole number from
    /// 4 to 100". [`with_value`] adds the value.
    pub message: Arc<str>,
}

impl Finding {
    /// A finding of a rule.
    #[must_use]
    pub fn new(
        severity: Severity,
        rule: &'static str,
        key: &str,
        value: &str,
        message: &str,
    ) -> Self {
        let (key, value, message) = (Arc::from(key), Arc::from(value), Arc::from(message));
        Self { severity, rule, key, value, message }
    }

    /// Something that is worth knowing and refuses nothing.
    #[must_use]
    pub fn note(rule: &'static str, key: &str, value: &str, message: &str) -> Self {
        Self::new(Severity::Note, rule, key, value, message)
    }

    /// Something that cannot be had.
    #[must_use]
    pub fn refusal(rule: &'static str, key: &str, value: &str, message: &str) -> Self {
        Self::new(Severity::Refusal, rule, key, value, message)
    }

    /// The message with the value: what stands after the key.
    #[must_use]
    pub fn text(&self) -> String {
        with_value(&self.message, &self.value)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text())
    }
}

/// A message with a value in quotes: at `{value}` where the message has it, else at the end as
/// `(got "…")`. An empty value is only written at `{value}`.
#[must_use]
pub fn with_value(message: &str, value: &str) -> String {
    match message.split_once("{value}") {
        Some((before, after)) => format!("{before}{value:?}{after}"),
        None if value.is_empty() => message.to_owned(),
        None => format!("{message} (got {value:?})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(value: &str, message: &str) -> String {
        let (severity, rule, key) = (Severity::Refusal, "Rule", Arc::from("key"));
        let (value, message) = (Arc::from(value), Arc::from(message));
        Finding { severity, rule, key, value, message }.to_string()
    }

    #[test]
    fn a_finding_names_key_value_and_what_is_allowed() {
        let number = "must be a whole number";
        assert_eq!(finding("soon", number), "key: must be a whole number (got \"soon\")");
        assert_eq!(finding("", number), "key: must be a whole number");
        let named = "label {value} is in use; use another one";
        assert_eq!(finding("a\n", named), "key: label \"a\\n\" is in use; use another one");
    }

    #[test]
    fn a_value_is_not_a_message() {
        assert_eq!(finding("{value}", "{value} is odd"), "key: \"{value}\" is odd");
    }
}
