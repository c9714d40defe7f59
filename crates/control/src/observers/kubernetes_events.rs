//! What a Service's owner was told by Events, and in which words.

use crate::clock::{at_ms, timestamp};
use crate::effect::KubernetesCall;
use crate::observers::event_queue::{Waiting, Word, Words};
use crate::observers::reason::{self, EventReason};
use model::kubernetes::Truth;
use model::obstacle::ObstacleKind;
use model::policy::Layout;
use model::report::{Finding, ServiceReport, Severity, State, Wait};
use model::{ServiceName, ServiceUid, World};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What was last said about a Service.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// Its name, for when it is gone.
    pub name: ServiceName,
    /// How far it was.
    pub state: Option<State>,
    /// Since when it is so, in milliseconds of the controller's clock.
    pub since_ms: u64,
    /// Since when all that it waits for is that Ballast reads, as long as that is so.
    pub unread_ms: Option<u64>,
    /// Hashes of the texts of findings and refusals that were said: a text may be as long as what
    /// an owner writes into annotations.
    pub texts: BTreeSet<u64>,
    /// The report that was looked at last: while it is the same value there is no news.
    pub report: Option<Arc<ServiceReport>>,
}

impl Said {
    /// Nothing was said yet.
    pub fn new(name: ServiceName, since_ms: u64) -> Self {
        Self { name, state: None, since_ms, unread_ms: None, texts: BTreeSet::new(), report: None }
    }

    /// What of this was not said yet; from here on all of it was. A refusal that is being tried
    /// again at this moment is not forgotten, unless there were many since the Service was settled
    /// last, which may be never.
    pub fn news(&mut self, texts: Vec<Told>, state: State) -> Vec<Told> {
        let hashes: BTreeSet<u64> = texts.iter().map(|told| hash(&told.text)).collect();
        let is_new = |told: &Told| !self.texts.contains(&hash(&told.text));
        let new = texts.into_iter().filter(is_new).collect();
        let settled = state == State::Programmed || state.is_frozen();
        if settled || self.texts.len() >= TEXTS {
            self.texts = hashes;
        } else {
            self.texts.extend(hashes);
        }
        new
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Kinds and codes that a Service was told of.
pub(crate) type Complaints = BTreeMap<ServiceUid, BTreeSet<(ObstacleKind, Arc<str>)>>;

/// What Services and Pods were told.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub said: BTreeMap<ServiceUid, Said>,
    /// Texts of findings that were said about Pods.
    pub said_of_pods: BTreeMap<ServiceName, BTreeSet<Arc<str>>>,
    /// What Services were told that holds them up.
    pub complaints: Complaints,
    pub words: Words,
    /// Number of the last Event.
    pub last: u64,
}

/// Findings of one rule that an Event names; the others are counted.
const NAMED: usize = 6;
/// Texts that are remembered of a Service between two states in which it is settled, about.
const TEXTS: usize = 64;
/// Most bytes of an Event's name, which is a DNS subdomain (kubernetes.io, "Object Names and IDs").
/// A Pod's own may be as long.
const NAME: usize = 253;

/// An Event's name: the object's, as far as there is room, and what makes it the only one.
fn name_of_event(object: &str, tail: &str) -> String {
    let room = NAME.saturating_sub(tail.len() + 1);
    let object = &object[..object.floor_char_boundary(room)];
    // Each part between dots ends in a letter or a digit.
    format!("{}.{tail}", object.trim_end_matches(['.', '-']))
}

impl Waiting {
    /// The call that posts it. Its name is made of the object's, the instance's and a number.
    pub fn call(&self, instance: &str, number: &str) -> KubernetesCall {
        let Self { kind, name: ServiceName { namespace, name }, uid, word, at_ms } = self;
        let at = timestamp(*at_ms);
        let event = name_of_event(name, &format!("{instance}{number}"));
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"namespace": &**namespace, "name": event},
            "involvedObject": {"apiVersion": "v1", "kind": kind, "namespace": &**namespace,
                "name": &**name, "uid": &**uid},
            "type": word.kind, "reason": word.reason, "message": word.message,
            "source": {"component": "ballast"}, "reportingComponent": "ballast",
            "reportingInstance": instance, "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        });
        let path = format!("/api/v1/namespaces/{namespace}/events");
        KubernetesCall { method: "POST", path, content_type: "application/json", body }
    }
}

/// Since when a Service that is first seen is in a state, as far as its condition tells: a restart
/// is nothing new.
pub(crate) fn since(world: &World, uid: &ServiceUid, state: State) -> Option<u64> {
    let condition = world.kubernetes.services.get(uid)?.condition.as_ref()?;
    let truth = match state {
        State::Programmed => Truth::True,
        State::Removing => return None,
        _ => Truth::False,
    };
    at_ms(condition.since.as_ref().filter(|_| condition.truth == truth)?)
}

/// Whether all that a Service waits for is that Ballast reads what there is: that is no news, and
/// after a start it is so of every Service.
pub(crate) fn is_unread(now: &ServiceReport) -> bool {
    now.state == State::Waiting
        && !now.waits.is_empty()
        && now.waits.iter().all(|wait| matches!(wait, Wait::Listing | Wait::Reading(_)))
}

/// Whether nothing was under way for a Service before.
pub(crate) fn is_done(was: Option<State>) -> bool {
    was.is_none_or(|was| was == State::Programmed || was.is_frozen())
}

/// An Event of a known reason.
pub(crate) fn word(reason: &EventReason, message: &str) -> Word {
    Word { kind: reason.kind, reason: reason.name.to_owned(), message: message.to_owned() }
}

/// The findings of one rule about a Service, as its owner reads them.
pub(crate) struct Told {
    /// One text for all findings of the rule.
    pub text: Arc<str>,
    /// Whether the Service is refused, warned of or noted.
    pub severity: Severity,
    /// The Events that say so.
    pub words: Vec<Word>,
}

/// What is wrong with a Service, by rule.
pub(crate) fn texts(report: &ServiceReport, layout: &Layout) -> Vec<Told> {
    let told = |(finding, text): (&Finding, Arc<str>)| {
        let severity = finding.severity;
        let mut words = vec![finding_word(finding, &text)];
        // On container load balancers users look for the rule, too.
        if *layout == Layout::PerService && severity == Severity::Refusal {
            words.push(warning(finding.rule, &text));
        }
        Told { text, severity, words }
    };
    by_rule(&report.findings).into_iter().map(told).collect()
}

/// The first finding of each rule, with a text for all of the rule.
pub(crate) fn by_rule(findings: &[Finding]) -> Vec<(&Finding, Arc<str>)> {
    let mut rules: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        rules.entry(finding.rule).or_default().push(finding);
    }
    findings
        .iter()
        .filter_map(|first| {
            let all = rules.remove(first.rule)?;
            let mut named: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
            if all.len() > NAMED {
                named.push(format!("and {} more", all.len() - NAMED));
            }
            Some((first, Arc::from(named.join("; "))))
        })
        .collect()
}

fn finding_word(finding: &Finding, text: &str) -> Word {
    match finding.severity {
        Severity::Refusal => failed(text),
        Severity::Note | Severity::Hold => warning(finding.rule, text),
    }
}

/// A finding that is an Event of its own.
pub(crate) fn warning(rule: &str, text: &str) -> Word {
    Word { kind: "Warning", reason: rule.to_owned(), message: text.to_owned() }
}

/// The reason is the one that operators' alerts match.
pub(crate) fn failed(text: &str) -> Word {
    word(&reason::SYNC_FAILED, &format!("Error syncing load balancer: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_of_a_long_name_has_a_name_that_kubernetes_takes() {
        assert_eq!(name_of_event("web", "feedf00d00000001"), "web.feedf00d00000001");
        for long in ["a".repeat(253), format!("{}.{}", "a".repeat(235), "b".repeat(17))] {
            let name = name_of_event(&long, "feedf00d00000001");
            assert!(name.len() <= 253 && name.ends_with("a.feedf00d00000001"), "{name}");
        }
    }
}
