//! A migration before it is done: steps, interruptions, what is kept.

use super::outbound;
use crate::output::{Ink, Paint};
use crate::render::plan::{Verb, kind_name, shown_name, verb, word};
use explain::forecast::{Forecast, Step};
use model::azure::Sku;
use model::kubernetes::Wish;
use model::plan::{Action, Resource};
use model::policy::{BalancerSku, Layout, PoolKind};
use model::report::Severity;
use model::{Policy, ServiceUid, World};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Names shown before the rest is counted.
const SHOWN: usize = 4;

/// What `migrate --dry-run -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationDocument {
    /// Where it leads.
    pub to: Vec<String>,
    /// Azure writes, in order.
    pub steps: Vec<StepView>,
    /// Who is interrupted.
    pub interruptions: Vec<Interruption>,
    /// Addresses in status that stay.
    pub kept: usize,
    /// Services whose addresses will be others.
    pub changed: Vec<String>,
    /// Why it cannot be begun.
    pub obstacles: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// Azure writes.
    pub calls: usize,
}

/// One Azure write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepView {
    /// Writes of a round go side by side; each round waits for the one before.
    pub round: usize,
    /// What is done.
    #[serde(serialize_with = "word")]
    pub verb: Verb,
    /// To what.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Services that traffic no longer reaches after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Services that it reaches again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
}

/// Services that are interrupted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interruption {
    /// Who.
    pub services: Vec<String>,
    /// The step after which traffic no longer reaches them.
    pub from: usize,
    /// The step after which it does again.
    pub to: Option<usize>,
    /// Writes from one to the other.
    pub writes: usize,
    /// Rounds of them: each waits for the one before.
    pub rounds: usize,
}

impl MigrationDocument {
    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// What a forecast comes to.
#[must_use]
pub fn document(forecast: &Forecast, world: &World, policy: &Policy) -> MigrationDocument {
    let names = Names { world };
    let mut rounds: Vec<usize> = forecast.steps.iter().map(|s| s.round).collect();
    rounds.dedup();
    let number = |round: usize| rounds.iter().position(|r| *r == round).map_or(0, |at| at + 1);
    let steps = forecast.steps.iter().map(|step| StepView {
        round: number(step.round),
        verb: verb(&step.change.action),
        kind: kind_name(&step.change.target),
        name: shown_name(&step.change.target),
        cut: names.of(step.cut.iter().map(|(uid, _)| uid)),
        restored: names.of(step.restored.iter().map(|(uid, _)| uid)),
    });
    let (kept, changed) = addresses(forecast, world);
    let said = |severity: Severity| {
        let all = forecast.report.findings.iter().filter(move |f| f.severity == severity);
        all.map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut notes = said(Severity::Note);
    if forecast.steps.iter().any(|step| deletes_basic(&step.change.action)) {
        notes.push(OUTBOUND.to_owned());
    }
    notes.extend(held_up_on_the_way(forecast));
    notes.extend(outbound::note(forecast, world, policy));
    MigrationDocument {
        to: target(policy),
        interruptions: interruptions(&forecast.steps, &names, &number),
        steps: steps.collect(),
        kept,
        changed,
        obstacles: said(Severity::Refusal),
        notes,
        calls: forecast.calls,
    }
}

/// What Services that are not held up before would be held up by in the end, such as a Private Link
/// Service that has to stay because private endpoints are connected to it.
fn held_up_on_the_way(forecast: &Forecast) -> Vec<String> {
    let before = |uid: &ServiceUid| {
        forecast.report.services.get(uid).is_some_and(|report| report.state.is_frozen())
    };
    let mut notes = Vec::new();
    for (uid, report) in &forecast.last.services {
        if report.state.is_frozen() && !before(uid) {
            let found = report.findings.iter().filter(|f| f.severity != Severity::Note);
            notes.extend(found.map(|finding| format!("{}: {finding}", report.name)));
        }
    }
    notes
}

/// What a Basic load balancer did beside its work.
const OUTBOUND: &str = "Nodes reached the Internet through their Basic load balancer. A Standard \
                        one lets nobody out by itself: see to a NAT gateway or an outbound rule";

fn deletes_basic(action: &Action) -> bool {
    let Action::Delete { before: Resource::LoadBalancer(balancer) } = action else { return false };
    balancer.sku == Sku::Basic
}

/// Services by name.
struct Names<'w> {
    world: &'w World,
}

impl Names<'_> {
    fn of<'u>(&self, uids: impl Iterator<Item = &'u ServiceUid>) -> Vec<String> {
        let all = &self.world.kubernetes.services;
        let names: BTreeSet<String> =
            uids.filter_map(|uid| all.get(uid)).map(|s| s.name.to_string()).collect();
        names.into_iter().collect()
    }
}

fn target(policy: &Policy) -> Vec<String> {
    let sku = match policy.sku {
        BalancerSku::Basic => "Basic load balancers",
        BalancerSku::Standard => "Standard load balancers",
        BalancerSku::Service => "container load balancers",
    };
    let layout = match &policy.layout {
        Layout::Single => "one public and one internal".to_owned(),
        Layout::Several(configs) => {
            let names: Vec<&str> = configs.iter().map(|c| &*c.name).collect();
            format!("{} of them, each public and internal: {}", names.len(), names.join(", "))
        }
        Layout::PerNodeSet { .. } => "one for each node set".to_owned(),
        Layout::PerService => "one for each Service".to_owned(),
    };
    let pools = match policy.pools {
        PoolKind::NodeNic => "pools that nodes join through their NICs",
        PoolKind::NodeIp => "pools of node addresses",
        PoolKind::PodIp => "pools of pod addresses",
    };
    vec![sku.to_owned(), layout, pools.to_owned()]
}

/// Addresses that stay, and Services whose addresses do not. One that is deleted, or another
/// controller's, loses or keeps its address whether there is a migration or not.
fn addresses(forecast: &Forecast, world: &World) -> (usize, Vec<String>) {
    let (mut kept, mut changed) = (0, Vec::new());
    let services = world.kubernetes.services.iter();
    for (uid, service) in services.filter(|(_, service)| service.wish == Wish::LoadBalancer) {
        let last = forecast.last.services.get(uid).map(|s| s.addresses.as_slice());
        let last = last.unwrap_or_default();
        let shown = service.ingress.iter().filter_map(|i| i.ip.as_ref());
        let (stay, go): (Vec<_>, Vec<_>) = shown.partition(|ip| last.contains(*ip));
        kept += stay.len();
        if !go.is_empty() {
            changed.push(service.name.to_string());
        }
    }
    changed.sort();
    (kept, changed)
}

fn interruptions(
    steps: &[Step],
    names: &Names<'_>,
    number: &impl Fn(usize) -> usize,
) -> Vec<Interruption> {
    let mut groups: BTreeMap<(usize, Option<usize>), BTreeSet<&ServiceUid>> = BTreeMap::new();
    for (from, step) in steps.iter().enumerate() {
        for who in &step.cut {
            let to = steps.iter().skip(from).position(|s| s.restored.contains(who));
            groups.entry((from, to.map(|n| from + n))).or_default().insert(&who.0);
        }
    }
    let found = groups.into_iter().map(|((from, to), uids)| {
        let last = to.unwrap_or(steps.len().saturating_sub(1));
        let rounds = number(steps[last].round) + 1 - number(steps[from].round);
        Interruption {
            services: names.of(uids.into_iter()),
            from: from + 1,
            to: to.map(|at| at + 1),
            writes: last + 1 - from,
            rounds,
        }
    });
    found.collect()
}

/// A few names, and how many more there are.
fn few(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn counted(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// The document as text.
#[must_use]
pub fn render(found: &MigrationDocument, paint: Paint) -> String {
    let mut text = format!("{} {}\n", paint.ink(Ink::Bold, "Migration to:"), found.to.join("; "));
    for obstacle in &found.obstacles {
        text.push_str(&paint.ink(Ink::Red, format!("! {obstacle}\n")));
    }
    if found.is_empty() && !found.obstacles.is_empty() {
        text.push_str("The migration is not begun.\n");
        return text;
    }
    if found.is_empty() {
        text.push_str("Nothing to migrate: no Azure write would be made.\n");
        return text;
    }
    let rounds = found.steps.last().map_or(0, |step| step.round);
    text.push_str(&format!(
        "\n{} in {}; those of a round go side by side, each round waits for the one before:\n",
        counted(found.calls, "Azure write"),
        counted(rounds, "round"),
    ));
    text.push_str(&render_steps(found, paint));
    text.push_str(&format!("\n{}", render_interruptions(found, paint)));
    text.push_str(&format!("{} kept.\n", counted_are(found.kept, "address", "addresses")));
    if !found.changed.is_empty() {
        let line = format!("Addresses change: {}\n", few(&found.changed));
        text.push_str(&paint.ink(Ink::Red, line));
    }
    for note in &found.notes {
        text.push_str(&paint.ink(Ink::Dim, format!("{note}\n")));
    }
    text
}

fn counted_are(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one} is") } else { format!("{n} {many} are") }
}

fn render_steps(found: &MigrationDocument, paint: Paint) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < found.steps.len() {
        let first = &found.steps[at];
        let alike =
            |s: &&StepView| s.round == first.round && s.verb == first.verb && s.kind == first.kind;
        let group: Vec<&StepView> = found.steps[at..].iter().take_while(alike).collect();
        let names: Vec<String> = group.iter().map(|s| s.name.clone()).collect();
        let count = if group.len() > 1 { format!("{} x ", group.len()) } else { String::new() };
        let what = format!("{count}{} {} {}", first.verb.word(), first.kind, few(&names));
        let ink = match first.verb {
            Verb::Create => Ink::Green,
            Verb::Change | Verb::Call => Ink::Yellow,
            Verb::Delete => Ink::Red,
        };
        text.push_str(&format!("{:>3}  {}\n", first.round, paint.ink(ink, what)));
        let union = |of: fn(&StepView) -> &Vec<String>| {
            let all: BTreeSet<String> = group.iter().flat_map(|s| of(s).iter().cloned()).collect();
            all.into_iter().collect::<Vec<_>>()
        };
        for (names, word) in [(union(|s| &s.cut), "cut off"), (union(|s| &s.restored), "back")] {
            if !names.is_empty() {
                let line = format!("{word}: {}", few(&names));
                text.push_str(&format!("       {}\n", paint.ink(Ink::Cyan, line)));
            }
        }
        at += group.len();
    }
    text
}

fn render_interruptions(found: &MigrationDocument, paint: Paint) -> String {
    if found.interruptions.is_empty() {
        return format!("{}\n", paint.ink(Ink::Green, "No Service is interrupted."));
    }
    let mut text = format!("{}\n", paint.ink(Ink::Bold, "Interrupted:"));
    for gap in &found.interruptions {
        let who = counted(gap.services.len(), "Service");
        let writes = counted(gap.writes, "write");
        let rounds = counted(gap.rounds, "round");
        let until = match gap.to {
            Some(to) => format!("from write {} to write {to}: {writes}, {rounds}", gap.from),
            None => format!("from write {} on: nothing brings them back", gap.from),
        };
        let names = few(&gap.services);
        text.push_str(&paint.ink(Ink::Red, format!("  {who} {until} ({names})\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use explain::forecast::forecast;
    use fixture::{policy, service, world};
    use model::kubernetes::LoadBalancerType;
    use model::report::{Finding, State};
    use std::sync::Arc;

    #[test]
    fn addresses_of_services_that_leave_or_are_others_do_not_change_by_a_migration() {
        let mut world = world();
        let own = world.kubernetes.services.values().next().expect("there is one");
        let mut ingress = own.ingress.clone();
        ingress[0].ip = Some(Arc::from("20.9.9.9"));
        let mut other = service(&[]);
        other.uid = ServiceUid::new("00000002-1111-4222-8333-0123456789ab");
        other.name = model::ServiceName::new("default", "other");
        other.load_balancer_type = LoadBalancerType::Foreign;
        other.wish = Wish::Nothing;
        other.ingress = ingress;
        world.kubernetes.services.insert(other.uid.clone(), Arc::new(other));
        let policy = policy();
        let found = document(&forecast(&world, &policy), &world, &policy);
        assert_eq!(found.changed, [""; 0]);
        assert_eq!(found.kept, 1);
    }

    /// A Service that is refused from the start stays, and its own condition has said so for long.
    #[test]
    fn who_is_held_up_on_the_way_is_told_of_beforehand() {
        let (world, policy) = (world(), policy());
        let plain = forecast(&world, &policy);
        let mut ending = plain.clone();
        let uid = service(&[]).uid;
        let report = Arc::make_mut(ending.last.services.get_mut(&uid).expect("it is reported"));
        report.state = State::RefusedServing;
        report.findings.push(Finding {
            severity: Severity::Refusal,
            rule: "PrivateLinkConnected",
            key: Arc::from("key"),
            value: Arc::from(""),
            message: Arc::from("must be true"),
        });
        let notes = |forecast: &Forecast| document(forecast, &world, &policy).notes;
        let said = "default/web: key: must be true".to_owned();
        assert!(notes(&ending).contains(&said), "{:?}", notes(&ending));
        assert!(!notes(&plain).contains(&said));
        ending.report = ending.last.clone();
        assert!(!notes(&ending).contains(&said));
    }
}
