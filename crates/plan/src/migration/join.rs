//! Two plans become one.

use super::stage::{Stage, Stages, Way, ips};
use super::{MOVING, Sides};
use crate::Refused;
use crate::ask::findings::{ENDPOINTS_OUTSIDE_CLUSTER, HAS_BOTH_ADDRESSES};
use crate::pods::selects;
use crate::shape::unserved;
use crate::tell::kubernetes::{drops, is_same, object};
use crate::tell::{condition, gate};
use model::kubernetes::{Backends, GateReason, Ingress, MoveStage, Service, Wish};
use model::plan::{
    Change, ConditionEdit, Edit, FinalizerPurpose, KubernetesWrite, MoveEdit, Object,
};
use model::policy::KeepBoth;
use model::report::{Finding, Report, ServiceReport, Severity, State, Wait};
use model::{Plan, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was planned of each kind of load balancers.
pub(super) struct Planned {
    pub nodes: (Plan, Report),
    pub pods: (Plan, Report),
}

impl Planned {
    fn of(&self, backends: Backends) -> &(Plan, Report) {
        match backends {
            Backends::Nodes => &self.nodes,
            Backends::Pods => &self.pods,
        }
    }

    /// Services with both kinds of load balancers that are refused or held by the kind that they
    /// have in the end, and why. One that tells no address of that kind has nothing there: only its
    /// move is refused, and the load balancer that it has follows what it asks.
    pub fn refused(&self, stages: &Stages) -> Refused {
        let verdict = |(uid, way): (&ServiceUid, &Way)| {
            let both = way.stage.keeps_former() && !way.part(way.home).is_empty();
            let report = self.of(way.home).1.services.get(uid).filter(|_| both)?;
            let reasons = report.findings.iter().filter(|f| f.severity != Severity::Note);
            report.state.is_frozen().then(|| (uid.clone(), reasons.cloned().collect()))
        };
        stages.all.iter().filter_map(verdict).collect()
    }
}

/// What one side writes to a Service.
#[derive(Default)]
struct Written<'p> {
    finalizers: Option<(&'p Edit, FinalizerPurpose)>,
    ingress: Option<&'p [Ingress]>,
    /// It has nothing of the Service left: it takes back what it said, then its finalizers.
    lets_go: bool,
}

type Writes<'p> = BTreeMap<&'p ServiceUid, Written<'p>>;

/// Two plans become one.
pub(super) fn join(
    world: &World,
    sides: &Sides,
    stages: &Stages,
    planned: Planned,
) -> (Plan, Report) {
    let (nodes, pods) = (written(&planned.nodes.0), written(&planned.pods.0));
    let none = Written::default();
    let mut writes = Vec::new();
    let mut services = BTreeMap::new();
    for (uid, service) in &world.kubernetes.services {
        let way = &stages.all[uid];
        let of = |backends| match backends {
            Backends::Nodes => nodes.get(uid).unwrap_or(&none),
            Backends::Pods => pods.get(uid).unwrap_or(&none),
        };
        let (here, there) = (of(way.home), of(way.home.other()));
        let reports = [way.home, way.home.other()].map(|b| planned.of(b).1.services.get(uid));
        writes.extend(finalizers(service, way, here, there));
        let report = report(service, way, reports);
        let frozen = report.as_ref().is_some_and(|report| report.state.is_frozen());
        let readiness = match (frozen, is_idle(way, reports)) {
            (_, true) => Readiness::Idle,
            (true, false) => Readiness::Held,
            (false, false) => Readiness::Ready,
        };
        writes.extend(status(service, way, here, there, readiness));
        if let Some(report) = report {
            services.insert(uid.clone(), (&**service, report));
        }
    }
    condition::write_all(&mut writes, &services);
    let summary = summary(sides, stages);
    let Planned { nodes: (node_plan, node_report), pods: (pod_plan, pod_report) } = planned;
    let of_pods = |write: &KubernetesWrite| matches!(write.object, Object::Pod { .. });
    let of_pods = pod_plan.writes.into_iter().filter(of_pods);
    writes.extend(of_pods.map(|write| gate(world, stages, &write).unwrap_or(write)));
    let mut changes: BTreeMap<_, Arc<Change>> = BTreeMap::new();
    for change in node_plan.changes.into_iter().chain(pod_plan.changes) {
        changes.entry(change.target.clone()).or_insert(change);
    }
    let changes = changes.into_values().collect();
    let plan = Plan { changes, writes, ledger: node_plan.ledger, tags: node_plan.tags };
    let both = |a: BTreeSet<_>, b: BTreeSet<_>| a.into_iter().chain(b).collect();
    let report = Report {
        services: services.into_iter().map(|(uid, (_, report))| (uid, Arc::new(report))).collect(),
        pods: pod_report.pods,
        needs: both(node_report.needs, pod_report.needs),
        findings: {
            let all = node_report.findings.into_iter().chain(pod_report.findings);
            let mut findings = vec![summary];
            all.for_each(|found| {
                if !findings.contains(&found) {
                    findings.push(found);
                }
            });
            findings
        },
        draining: node_report.draining,
        holders: pod_report.holders,
        obstacles: Vec::new(),
    };
    (plan, report)
}

/// Whether a Service may go on to its next stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readiness {
    /// It may.
    Ready,
    /// Its owner holds it back, or the new load balancer refuses it.
    Held,
    /// The new load balancer leads to no backend yet, the former does: nothing more is told.
    Idle,
}

/// Whether only the former load balancer leads to backends. Where no Pod is ready neither does, as
/// nodes pass connections on to Pods; to what is outside of the cluster only nodes do.
fn is_idle(way: &Way, [here, there]: [Option<&Arc<ServiceReport>>; 2]) -> bool {
    let lacks = |report: Option<&Arc<ServiceReport>>| {
        let mut findings = report.into_iter().flat_map(|report| &report.findings);
        findings.any(|finding| finding.rule == unserved::RULE)
    };
    way.outside || (way.home == Backends::Nodes && lacks(here) && !lacks(there))
}

/// What a gate says in place of that no Service selects its Pod: those that do may have load
/// balancers over nodes, of which container load balancers do not know.
fn gate(world: &World, stages: &Stages, write: &KubernetesWrite) -> Option<KubernetesWrite> {
    let Edit::Gate { reason: GateReason::NoService, .. } = write.edit else { return None };
    let Object::Pod { name, .. } = &write.object else { return None };
    let pod = world.kubernetes.gated_pods.get(name)?;
    let over_nodes = |service: &Service| {
        service.wish == Wish::LoadBalancer && stages.all[&service.uid].is_wanted(Backends::Nodes)
    };
    let mut services = world.kubernetes.services.values();
    services.any(|s| selects(s, pod) && over_nodes(s)).then(|| gate::open(pod))
}

/// What a plan writes to each Service.
fn written(plan: &Plan) -> Writes<'_> {
    let mut all = Writes::new();
    for write in &plan.writes {
        let Object::Service { uid, .. } = &write.object else { continue };
        let own = all.entry(uid).or_default();
        match &write.edit {
            edit @ Edit::Finalizers { purpose, .. } => {
                own.finalizers = Some((edit, *purpose));
                own.lets_go |= *purpose == FinalizerPurpose::Release;
            }
            Edit::Status { ingress, condition, .. } => {
                own.ingress = own.ingress.or(ingress.as_deref());
                own.lets_go |= *condition == ConditionEdit::Remove;
            }
            Edit::Gate { .. } => {}
        }
    }
    all
}

/// A finalizer comes for either kind, and goes when neither has anything left. That of container
/// load balancers alone goes before, when those have nothing left.
fn finalizers(
    service: &Service,
    way: &Way,
    here: &Written<'_>,
    there: &Written<'_>,
) -> Option<KubernetesWrite> {
    let purpose = |written: &Written<'_>| written.finalizers.map(|(_, purpose)| purpose);
    let edit = match (purpose(here), purpose(there)) {
        (Some(FinalizerPurpose::Claim), Some(FinalizerPurpose::Claim)) => {
            // Container load balancers have more of them.
            let of_pods = if way.home == Backends::Pods { here } else { there };
            of_pods.finalizers?.0
        }
        (Some(FinalizerPurpose::Claim), _) => here.finalizers?.0,
        (_, Some(FinalizerPurpose::Claim)) => there.finalizers?.0,
        (Some(FinalizerPurpose::Release), Some(FinalizerPurpose::Release)) => here.finalizers?.0,
        (Some(FinalizerPurpose::Moved), Some(FinalizerPurpose::Release)) => here.finalizers?.0,
        _ => return None,
    };
    Some(KubernetesWrite { object: object(service), edit: edit.clone() })
}

/// The status tells what both tell, as far as the Service's way goes.
fn status(
    service: &Service,
    way: &Way,
    here: &Written<'_>,
    there: &Written<'_>,
    readiness: Readiness,
) -> Option<KubernetesWrite> {
    let is_told = !service.ingress.is_empty() || service.condition.is_some();
    if service.wish == Wish::Nothing && here.lets_go && there.lets_go {
        let released = [here, there].iter().all(|written| written.finalizers.is_some());
        return (is_told && !released).then(|| take_back(service));
    }
    let former = way.home.other();
    let own = match (way.stage, readiness) {
        // What clients have been told stays, as after a config that was turned back.
        (Stage::Arriving, Readiness::Idle) => way.part(way.home),
        _ => here.ingress.unwrap_or_else(|| way.part(way.home)),
    };
    let others = there.ingress.unwrap_or_else(|| way.part(former));
    let ready = readiness == Readiness::Ready && !own.is_empty();
    let left = there.lets_go || service.finalizers.is_empty();
    let moving = match way.stage {
        Stage::Arriving if ready && !others.iter().all(|entry| own.contains(entry)) => {
            MoveEdit::Set { to: way.home, stage: MoveStage::Both }
        }
        Stage::Withdrawing if ready => MoveEdit::Set { to: way.home, stage: MoveStage::Draining },
        Stage::Gone if service.moving.is_some() && left => MoveEdit::Remove,
        _ => MoveEdit::Keep,
    };
    // The former address stays in the status while the Service has no other.
    let alone = own.is_empty() && way.stage.keeps_former();
    let waits = way.stage == Stage::Withdrawing && moving == MoveEdit::Keep;
    let tells_former = way.stage.tells_former() || alone || waits;
    // Until lists show whose an address is, both may tell it.
    let others = others.iter().filter(|entry| tells_former && !own.contains(entry));
    let list: Vec<Ingress> = own.iter().chain(others).cloned().collect();
    let is_same = is_same(&list, &service.ingress);
    if is_same && moving == MoveEdit::Keep {
        return None;
    }
    if way.unlisted && drops(&list, &service.ingress) {
        // An address may be one of either load balancer: the list that shows it is being read.
        return None;
    }
    let ingress = (!is_same).then_some(list);
    let edit = Edit::Status { ingress, condition: ConditionEdit::Keep, moving };
    Some(KubernetesWrite { object: object(service), edit })
}

/// A Service that wants no load balancer any more, and has nothing left, says nothing of one.
fn take_back(service: &Service) -> KubernetesWrite {
    let moving = service.moving.as_ref().map_or(MoveEdit::Keep, |_| MoveEdit::Remove);
    let ingress = (!service.ingress.is_empty()).then(Vec::new);
    let edit = Edit::Status { ingress, condition: ConditionEdit::Remove, moving };
    KubernetesWrite { object: object(service), edit }
}

fn report(
    service: &Service,
    way: &Way,
    [here, there]: [Option<&Arc<ServiceReport>>; 2],
) -> Option<ServiceReport> {
    let Some(here) = here else { return there.map(|report| ServiceReport::clone(report)) };
    let mut report = ServiceReport::clone(here);
    let Some(there) = there else { return Some(report) };
    if way.stage == Stage::Gone {
        // What is left of the former load balancer is still to go.
        let mut former = ServiceReport::clone(there);
        former.waits.retain(|wait| *wait != Wait::Status);
        report.waits = waits(&report, &former);
        if report.state == State::Programmed && !report.waits.is_empty() {
            report.state = State::Waiting;
        }
        keep(&mut report, former);
        return Some(report);
    }
    if way.stage == Stage::Still {
        report.waits = waits(&report, there);
        if there.state == State::Removing {
            report.state = State::Removing;
        }
    }
    if way.stage.tells_former() {
        let known = report.addresses.clone();
        report.addresses.extend(there.addresses.iter().filter(|a| !known.contains(a)).cloned());
    }
    if way.stage == Stage::Arriving {
        report.balancer = there.balancer.clone().or(report.balancer);
        if report.state == State::Refused {
            report.state = State::RefusedServing;
        } else {
            report.waits = waits(&report, there);
        }
    }
    let tells_both = !way.part(way.home.other()).is_empty();
    if tells_both && matches!(way.stage, Stage::Both | Stage::Withdrawing) {
        report.findings.push(both(way));
    }
    let due = way.unconfirmed(service).filter(|_| way.stage == Stage::Both);
    if due.is_some() && !report.state.is_frozen() {
        report.state = State::Held;
    }
    report.findings.extend(due);
    if way.outside && !report.state.is_frozen() {
        stay(&mut report, way, there);
    }
    Some(report)
}

/// A Service that only nodes can serve does not go on, as one that the new load balancers refuse.
/// What its new load balancer would have told is not waited for.
fn stay(report: &mut ServiceReport, way: &Way, former: &ServiceReport) {
    if !matches!(way.stage, Stage::Arriving | Stage::Both | Stage::Withdrawing) {
        return;
    }
    report.state = State::RefusedServing;
    report.waits.clone_from(&former.waits);
    if way.part(way.home).is_empty() {
        report.addresses.clone_from(&former.addresses);
    }
    report.findings.push(ENDPOINTS_OUTSIDE_CLUSTER.found("endpoints", ""));
}

/// Where the former load balancer has to stay, although the Service has moved, its owner learns
/// what for: only its owner can end that.
fn keep(report: &mut ServiceReport, former: ServiceReport) {
    if !former.state.is_frozen() || report.state.is_frozen() {
        return;
    }
    report.state = if former.state == State::Held { State::Held } else { State::RefusedServing };
    let reasons = former.findings.into_iter().filter(|f| f.severity != Severity::Note);
    report.findings.extend(reasons);
}

fn waits(one: &ServiceReport, other: &ServiceReport) -> Vec<Wait> {
    let all: BTreeSet<&Wait> = one.waits.iter().chain(&other.waits).collect();
    all.into_iter().cloned().collect()
}

/// The finding on a Service that has the addresses of both load balancers.
fn both(way: &Way) -> Finding {
    let former = ips(way.part(way.home.other()));
    let message = format!(
        "the Service moves to the other kind of load balancers: {former} leaves its status when \
         keepBoth is over; let clients use {}",
        ips(way.part(way.home))
    );
    HAS_BOTH_ADDRESSES.found_with("layoutMigration", "", &message)
}

/// What is said of the whole.
fn summary(sides: &Sides, stages: &Stages) -> Finding {
    let target = sides.target.backends();
    let to = match target {
        Backends::Nodes => "load balancers over nodes",
        Backends::Pods => "container load balancers",
    };
    let moving = || stages.all.values().filter(|way| way.home == target);
    let there = moving().filter(|way| way.stage == Stage::Gone).count();
    let time = match sides.migration.keep_both {
        KeepBoth::For { seconds } => format!("for {}", duration(seconds)),
        KeepBoth::UntilTold => "until layoutMigration.keepBoth is a time".to_owned(),
    };
    let message = format!(
        "Services move to {to}: each has the addresses of both {time}, then only the new one; \
         {there} of {} have moved",
        moving().count()
    );
    Finding::note(MOVING, "layoutMigration", "", &message)
}

/// A time in the largest unit that it is a whole number of.
fn duration(seconds: u32) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let whole =
        units.into_iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(ip: &str) -> Ingress {
        Ingress { ip: Some(Arc::from(ip)), hostname: None }
    }

    fn arriving(home: Backends, [nodes, pods]: [Vec<Ingress>; 2]) -> Way {
        Way { home, stage: Stage::Arriving, nodes, pods, unlisted: false, outside: false }
    }

    /// Its public IP over nodes is in a group that has not been read: nothing says whose its
    /// address is, and the container load balancer tells of its own alone.
    #[test]
    fn an_address_stays_in_the_status_until_the_list_that_shows_it_is_read() {
        let told = [entry("20.0.0.16"), entry("20.0.0.2")];
        let service = Service { ingress: told.to_vec(), ..fixture::service(&[]) };
        let (nodes, pods) = (Vec::new(), told.to_vec());
        let way = Way { unlisted: true, ..arriving(Backends::Nodes, [nodes, pods]) };
        let there = Written { ingress: Some(&told[1..]), ..Written::default() };
        let write = |way| status(&service, way, &Written::default(), &there, Readiness::Ready);
        assert!(write(&way).is_none());
        assert!(
            write(&Way { unlisted: false, ..way.clone() }).is_some(),
            "the list does not have it"
        );
    }

    /// The new load balancer leads to no backend: its address is not told, and one that has been
    /// told is not taken back, as where a config is turned back while the status has both.
    #[test]
    fn who_has_no_backend_yet_tells_nothing_more_and_takes_nothing_back() {
        let (node, pod) = (entry("20.0.0.1"), entry("20.0.0.9"));
        let written = |told: &[&Ingress], idle| {
            let told: Vec<Ingress> = told.iter().map(|entry| (*entry).clone()).collect();
            let part = |of: &Ingress| told.iter().filter(|entry| *entry == of).cloned().collect();
            let way = arriving(Backends::Pods, [part(&node), part(&pod)]);
            let service = Service { ingress: told.clone(), ..fixture::service(&[]) };
            let pods = [pod.clone()];
            let here = Written { ingress: Some(&pods), ..Written::default() };
            status(&service, &way, &here, &Written::default(), idle).is_some()
        };
        assert!(written(&[&node], Readiness::Ready), "it is told");
        assert!(!written(&[&node], Readiness::Idle), "it is not told");
        assert!(written(&[&pod, &node], Readiness::Ready), "the condition says so");
        assert!(!written(&[&pod, &node], Readiness::Idle), "it stays told");
    }

    #[test]
    fn who_only_nodes_can_serve_stays_and_says_why() {
        let reported = |addresses: &[&str], waits| ServiceReport {
            addresses: addresses.iter().map(|address| Arc::from(*address)).collect(),
            waits,
            ..fixture::service_report(State::Programmed)
        };
        let here = Arc::new(reported(&["20.0.0.9"], vec![Wait::Status]));
        let there = Arc::new(reported(&["20.0.0.1"], Vec::new()));
        let service = fixture::service(&[]);
        let way = arriving(Backends::Pods, [vec![entry("20.0.0.1")], Vec::new()]);
        let of = |way: &Way| {
            let reports = [Some(&here), Some(&there)];
            (report(&service, way, reports).expect("there is one"), is_idle(way, reports))
        };
        let (moving, idle) = of(&way);
        assert_eq!((moving.state, moving.findings.len(), idle), (State::Programmed, 0, false));
        let (staying, idle) = of(&Way { outside: true, ..way.clone() });
        assert_eq!(staying.state, State::RefusedServing);
        assert_eq!(staying.findings[0].rule, ENDPOINTS_OUTSIDE_CLUSTER.name);
        assert_eq!((staying.addresses, staying.waits), (there.addresses.clone(), Vec::new()));
        assert!(idle);
        // Who has left does not come back.
        let gone = Way { stage: Stage::Gone, outside: true, ..way };
        assert_eq!(of(&gone).0.findings, []);
    }

    #[test]
    fn who_has_both_addresses_is_told_of_them_only_while_there_are_two() {
        let reported = || Arc::new(fixture::service_report(State::Programmed));
        let (here, there) = (reported(), reported());
        let rules = |nodes: Vec<Ingress>| {
            let way = arriving(Backends::Pods, [nodes, vec![entry("20.0.0.9")]]);
            let way = Way { stage: Stage::Withdrawing, ..way };
            let report = report(&fixture::service(&[]), &way, [Some(&here), Some(&there)]);
            report.expect("there is one").findings.iter().map(|f| f.rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(vec![entry("20.0.0.1")]), [HAS_BOTH_ADDRESSES.name]);
        assert_eq!(rules(Vec::new()), Vec::<&str>::new(), "the former one is gone already");
    }
    /// Only what a Service has of both kinds is kept by a refusal.
    #[test]
    fn a_refusal_keeps_what_a_service_has_of_both_kinds() {
        let (node, pod) = (|| vec![entry("20.0.0.1")], || vec![entry("20.0.0.9")]);
        let uid = fixture::service(&[]).uid;
        let kept = |home, state, parts, stage| {
            let report = Arc::new(fixture::service_report(state));
            let services = BTreeMap::from([(uid.clone(), report)]);
            let side = |of| match of == home {
                true => {
                    (Plan::default(), Report { services: services.clone(), ..Report::default() })
                }
                false => (Plan::default(), Report::default()),
            };
            let planned = Planned { nodes: side(Backends::Nodes), pods: side(Backends::Pods) };
            let way = Way { stage, ..arriving(home, parts) };
            let stages = Stages { all: BTreeMap::from([(uid.clone(), way)]) };
            let refused = planned.refused(&stages);
            assert!(stages.kept(&refused, home).is_empty(), "there it is refused");
            stages.kept(&refused, home.other()).len() == 1
        };
        for home in [Backends::Pods, Backends::Nodes] {
            let refused = State::RefusedServing;
            assert!(kept(home, refused, [node(), pod()], Stage::Both));
            assert!(!kept(home, State::Programmed, [node(), pod()], Stage::Both));
            assert!(!kept(home, refused, [node(), pod()], Stage::Gone));
        }
        let alone = [node(), Vec::new()];
        assert!(!kept(Backends::Pods, State::Refused, alone, Stage::Arriving), "it only stays");
    }
}
