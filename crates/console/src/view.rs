//! What all pages look at: each Service, how far it is, what it waits on and what is wrong.

use model::obstacle::{Obstacle, ObstacleKind};
use model::report::{Finding, ServiceReport, Severity, State, Wait};
use model::world::Fact;
use model::{Report, ServiceBackends, ServiceName, ServiceUid, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who looks at what, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The cluster's name.
    pub cluster: String,
    /// Ballast's version.
    pub version: String,
    /// When the page is made, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Who leads, in one line; empty where processes do not take turns.
    pub leader: String,
    /// What stands in the way; one line each, the last one says how many more there are.
    pub troubles: Vec<String>,
    /// How many findings there are.
    pub findings: usize,
}

/// What calls came to since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Azure writes sent.
    pub writes: u64,
    /// Azure reads sent.
    pub reads: u64,
    /// Azure writes that failed.
    pub failures: u64,
    /// Azure writes under way.
    pub under_way: u64,
    /// Kubernetes writes sent.
    pub kubernetes: u64,
}

/// One of Azure's limits on calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Which limit.
    pub name: String,
    /// What it lets through; `None` where neither Azure's published limits nor its answers say so.
    pub room: Option<Room>,
    /// Why calls wait, and until when, in milliseconds since the Unix epoch.
    pub held: Option<(String, u64)>,
}

/// What a limit on calls lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Calls that may be sent now.
    pub left: u64,
    /// Calls it holds when it is full.
    pub full: u64,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The Service does not get what it asks for until it changes.
    Refused,
    /// A call failed or is not answered; it is attempted again.
    HeldUp,
    /// The owner of the Service holds it back.
    Held,
    /// It is planned; its owner should know.
    Note,
}

impl Grade {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::HeldUp => "in the way",
            Self::Held => "held",
            Self::Note => "note",
        }
    }
}

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How bad it is.
    pub grade: Grade,
    /// The rule that is broken, or Azure's error code.
    pub rule: String,
    /// The annotation or field.
    pub key: Option<String>,
    /// What is wrong and what is allowed, or what Azure said.
    pub text: String,
    /// When it is tried again, in milliseconds since the Unix epoch.
    pub retry_ms: Option<u64>,
    /// How often it was tried.
    pub attempt: Option<u32>,
}

impl Fault {
    /// Whether it is a Service's own: what holds it up stands among the obstacles, which may hold
    /// up other Services, too.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.grade != Grade::HeldUp
    }
}

impl From<&Obstacle> for Fault {
    fn from(obstacle: &Obstacle) -> Self {
        let grade = match obstacle.kind {
            ObstacleKind::Refused => Grade::Refused,
            ObstacleKind::Held => Grade::Held,
            _ => Grade::HeldUp,
        };
        Self {
            grade,
            rule: obstacle.code.to_string(),
            key: None,
            text: obstacle.cause(),
            retry_ms: obstacle.next_ms,
            attempt: Some(obstacle.attempt).filter(|attempt| *attempt > 0),
        }
    }
}

impl From<&Finding> for Fault {
    fn from(finding: &Finding) -> Self {
        let Finding { severity, rule, key, value: _, message: _ } = finding;
        let grade = match severity {
            Severity::Refusal => Grade::Refused,
            Severity::Hold => Grade::Held,
            Severity::Note => Grade::Note,
        };
        Self {
            grade,
            rule: (*rule).to_owned(),
            key: Some(key.to_string()),
            text: finding.text(),
            retry_ms: None,
            attempt: None,
        }
    }
}

/// One Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLine {
    /// UID.
    pub uid: ServiceUid,
    /// Namespace and name.
    pub name: ServiceName,
    /// How far it is.
    pub state: State,
    /// Since when it is so, as far as known.
    pub since_ms: Option<u64>,
    /// Its load balancer.
    pub balancer: Option<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// The host names that Azure has for them.
    pub hosts: Vec<Arc<str>>,
    /// What it waits on.
    pub waits: Vec<String>,
    /// What is wrong with it, the worst first.
    pub faults: Vec<Fault>,
    /// Which backends answer health probes, where that is read.
    pub backends: Option<Arc<ServiceBackends>>,
}

impl ServiceLine {
    /// Whether something stands in its way, or it waits.
    #[must_use]
    pub fn is_held_up(&self) -> bool {
        !self.waits.is_empty() || self.faults.iter().any(|fault| fault.grade != Grade::Note)
    }
}

/// One part of Azure that somebody else changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftLine {
    /// The resource.
    pub resource: String,
    /// What happened to it.
    pub what: String,
    /// The Services it concerns.
    pub services: Vec<ServiceName>,
    /// What becomes of it, in a word or two.
    pub outcome: &'static str,
    /// When it was noticed, in milliseconds since the Unix epoch.
    pub noticed_ms: u64,
}

/// Everything the pages look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Services by namespace and name.
    pub services: Vec<ServiceLine>,
    /// Egress Pods that something is wrong with.
    pub pods: Vec<(ServiceName, Vec<Fault>)>,
    /// What is wrong with the whole.
    pub whole: Vec<Fault>,
    /// What others changed: what stands now, then what is over.
    pub drift: Vec<DriftLine>,
    /// Calls that fail or are not answered.
    pub obstacles: Vec<Obstacle>,
    /// Why it is not known which backends answer health probes.
    pub backend_trouble: Option<Arc<str>>,
}

/// Lines in the head of every page.
const TROUBLES: usize = 5;

/// The first of many lines, and how many more there are.
fn few(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(TROUBLES);
    if more > 0 {
        lines.truncate(TROUBLES);
        lines.push(format!("and {more} more: see Findings"));
    }
    lines
}

impl Snapshot {
    /// What stands in the way, one line each, for the head of every page.
    #[must_use]
    pub fn troubles(&self, now_ms: u64) -> Vec<String> {
        let line = |obstacle: &Obstacle| {
            let text = obstacle.text(now_ms);
            match obstacle.services.len() {
                0 => text,
                1 => format!("{text}; 1 Service is held up"),
                n => format!("{text}; {n} Services are held up"),
            }
        };
        let probes = self.backend_trouble.iter().map(ToString::to_string);
        few(self.obstacles.iter().map(line).chain(probes).collect())
    }

    /// How many findings there are, on the whole, Services and Pods, and what stands in the way.
    #[must_use]
    pub fn findings(&self) -> usize {
        let own = self.services.iter().flat_map(|line| &line.faults).filter(|fault| fault.is_own());
        let pods = self.pods.iter().flat_map(|(_, faults)| faults);
        self.obstacles.len() + self.whole.len() + own.count() + pods.count()
    }

    /// Calls that fail or are not answered, and the Services that each holds up.
    pub fn held_up(&self) -> impl Iterator<Item = (Vec<ServiceName>, &Obstacle)> {
        let lines = self.services.iter();
        let names: BTreeMap<&ServiceUid, &ServiceName> =
            lines.map(|line| (&line.uid, &line.name)).collect();
        self.obstacles.iter().map(move |obstacle| {
            let known = obstacle.services.iter().filter_map(|uid| names.get(uid));
            (known.map(|name| ServiceName::clone(name)).collect(), obstacle)
        })
    }

    /// Of a World and what planning says about it.
    #[must_use]
    pub fn of(
        world: &World,
        report: &Report,
        since_ms: impl Fn(&ServiceUid) -> Option<u64>,
    ) -> Self {
        let services = report.services.iter();
        let mut services: Vec<ServiceLine> =
            services.map(|(uid, now)| line(world, uid, now, since_ms(uid))).collect();
        let hosts = hosts(world);
        for line in services.iter_mut().filter(|_| !hosts.is_empty()) {
            let of = line.addresses.iter().filter_map(|address| hosts.get(address));
            line.hosts = of.map(|host| Arc::clone(host)).collect();
        }
        let places: BTreeMap<ServiceUid, usize> =
            services.iter().enumerate().map(|(at, line)| (line.uid.clone(), at)).collect();
        for obstacle in &report.obstacles {
            for at in obstacle.services.iter().filter_map(|uid| places.get(uid)) {
                services[*at].faults.push(Fault::from(obstacle));
            }
        }
        services.iter_mut().for_each(|line| line.faults.sort_by_key(|fault| fault.grade));
        services.sort_by(|a, b| a.name.cmp(&b.name));
        let pods = report.pods.iter();
        let pods = pods.map(|(name, all)| (name.clone(), all.iter().map(Fault::from).collect()));
        let whole = report.findings.iter().map(Fault::from).collect();
        let obstacles = report.obstacles.clone();
        let (pods, drift) = (pods.collect(), Vec::new());
        Self { services, pods, whole, drift, obstacles, backend_trouble: None }
    }

    /// How many Services are in a state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.services.iter().filter(|s| s.state == state).count()
    }

    /// A Service by its name.
    #[must_use]
    pub fn service(&self, name: &ServiceName) -> Option<&ServiceLine> {
        let at = self.services.binary_search_by(|s| s.name.cmp(name)).ok()?;
        self.services.get(at)
    }
}

/// Host names of public IPs with a DNS label, by address.
fn hosts(world: &World) -> BTreeMap<String, &Arc<str>> {
    let ips = world.azure.public_ips.values().flat_map(Fact::each);
    let named = ips.filter_map(|ip| Some((ip.address?.to_string(), ip.fqdn.as_ref()?)));
    named.collect()
}

fn line(
    world: &World,
    uid: &ServiceUid,
    now: &ServiceReport,
    since_ms: Option<u64>,
) -> ServiceLine {
    let faults = now.findings.iter().map(Fault::from).collect();
    let mut addresses: Vec<String> = now.addresses.iter().map(ToString::to_string).collect();
    if addresses.is_empty() {
        let standing = world.kubernetes.services.get(uid).map(|s| s.ingress.as_slice());
        let standing = standing.unwrap_or_default().iter();
        let texts = standing.filter_map(|i| i.ip.as_ref().or(i.hostname.as_ref()));
        addresses.extend(texts.map(ToString::to_string));
    }
    let waits = now.waits.iter().filter(|w| !matches!(w, Wait::SetAside { .. }));
    ServiceLine {
        uid: uid.clone(),
        name: now.name.clone(),
        state: now.state,
        since_ms,
        balancer: now.balancer.as_ref().map(ToString::to_string),
        addresses,
        hosts: Vec::new(),
        waits: waits.map(ToString::to_string).collect(),
        faults,
        backends: None,
    }
}

/// Where each state stands in lists: what needs attention comes first.
#[must_use]
pub fn rank(state: State) -> usize {
    State::ALL.iter().position(|known| *known == state).unwrap_or(State::ALL.len())
}

/// Whether a Service is what is searched for: part of its name, an address, a host name, or its
/// load balancer.
#[must_use]
pub fn matches(service: &ServiceLine, wanted: &str) -> bool {
    let wanted = wanted.trim().to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&wanted);
    wanted.is_empty()
        || has(&service.name.to_string())
        || service.addresses.iter().any(|a| has(a))
        || service.hosts.iter().any(|host| has(host))
        || service.balancer.as_deref().is_some_and(has)
}
