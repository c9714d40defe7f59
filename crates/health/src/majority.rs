//! Over all nodes: when so many proxies are ill at once that nodes are not the cause.

use crate::Verdict;
use model::NodeName;
use std::collections::{BTreeMap, BTreeSet};

/// For how long few have to be ill until each node's proxy counts again.
const CALM_MS: u64 = 30_000;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportPart {
    /// Reports of agents.
    Reports,
    /// The verdict as it stands.
    Verdict,
}

/// Something the controller learns of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportFact {
    /// A list begins. What was known stays in force until its end.
    Begin(ReportPart),
    /// It is complete: what it did not have is gone.
    End(ReportPart),
    /// The proxy of this node is ill.
    Ill(NodeName),
    /// It is not any more.
    Well(NodeName),
    /// The verdict's object stands.
    Verdict,
    /// It does not.
    VerdictGone,
}

/// What to do about the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is.
    Keep,
    /// Nodes with an ill proxy are to stay in rotation from now on.
    Raise,
    /// Each node's proxy counts again.
    Lift,
}

/// Counts the ill.
///
/// # Guarantees
/// The verdict rises when more than the share is ill, and falls when no more than half the share
/// has been ill for thirty seconds: a roll-out that is taken back node by node changes it once each
/// way. A new leader begins with the verdict that stands.
#[derive(Debug)]
pub struct Majority {
    share_percent: u8,
    ill: BTreeSet<NodeName>,
    complete: BTreeSet<ReportPart>,
    listed: BTreeMap<ReportPart, BTreeSet<NodeName>>,
    standing: Verdict,
    /// Whether a list under way has had the verdict's object.
    standing_listed: bool,
    calm_since_ms: Option<u64>,
}

impl Majority {
    /// Nothing is known yet; more than this share of nodes is a majority.
    #[must_use]
    pub fn new(share_percent: u8) -> Self {
        Self {
            share_percent,
            ill: BTreeSet::new(),
            complete: BTreeSet::new(),
            listed: BTreeMap::new(),
            standing: Verdict::Each,
            standing_listed: false,
            calm_since_ms: None,
        }
    }

    /// Takes a fact in.
    pub fn learn(&mut self, fact: ReportFact) {
        match fact {
            ReportFact::Begin(part) => {
                self.listed.insert(part, BTreeSet::new());
                if part == ReportPart::Verdict {
                    self.standing_listed = false;
                }
            }
            ReportFact::End(part) => self.end(part),
            ReportFact::Ill(node) => {
                if let Some(listed) = self.listed.get_mut(&ReportPart::Reports) {
                    listed.insert(node.clone());
                }
                self.ill.insert(node);
            }
            ReportFact::Well(node) => {
                self.ill.remove(&node);
            }
            ReportFact::Verdict => {
                self.standing_listed = true;
                self.standing = Verdict::Together;
            }
            ReportFact::VerdictGone => self.standing = Verdict::Each,
        }
    }

    fn end(&mut self, part: ReportPart) {
        let Some(listed) = self.listed.remove(&part) else { return };
        self.complete.insert(part);
        match part {
            ReportPart::Reports => self.ill.retain(|node| listed.contains(node)),
            ReportPart::Verdict if !self.standing_listed => self.standing = Verdict::Each,
            ReportPart::Verdict => {}
        }
    }

    /// The verdict as it stands.
    #[must_use]
    pub fn standing(&self) -> Verdict {
        self.standing
    }

    /// How many of these nodes have an ill proxy. A report of a node that is not among them does
    /// not count.
    #[must_use]
    pub fn ill_among(&self, nodes: &BTreeSet<NodeName>) -> usize {
        self.ill.intersection(nodes).count()
    }

    /// Whether nothing is left to wait for: no proxy is ill, and the verdict says so.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.ill.is_empty() && self.standing == Verdict::Each
    }

    /// What to do about the verdict; `nodes` are those that take traffic.
    pub fn decide(&mut self, nodes: &BTreeSet<NodeName>, now_ms: u64) -> Decision {
        let known = [ReportPart::Reports, ReportPart::Verdict];
        if nodes.is_empty() || !known.iter().all(|part| self.complete.contains(part)) {
            return Decision::Keep;
        }
        let (ill, all) = (self.ill_among(nodes) * 100, nodes.len());
        let share = usize::from(self.share_percent) * all;
        if self.standing == Verdict::Each {
            self.calm_since_ms = None;
            return if ill > share { Decision::Raise } else { Decision::Keep };
        }
        if ill * 2 > share {
            self.calm_since_ms = None;
            return Decision::Keep;
        }
        let since_ms = *self.calm_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) >= CALM_MS { Decision::Lift } else { Decision::Keep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: usize) -> BTreeSet<NodeName> {
        (0..count).map(|number| NodeName::new(format!("n{number:02}"))).collect()
    }

    /// A counter that has listed everything, with so many ill.
    fn counted(share: u8, ill: usize) -> Majority {
        let mut majority = Majority::new(share);
        for part in [ReportPart::Reports, ReportPart::Verdict] {
            majority.learn(ReportFact::Begin(part));
            majority.learn(ReportFact::End(part));
        }
        nodes(ill).into_iter().for_each(|node| majority.learn(ReportFact::Ill(node)));
        majority
    }

    #[test]
    fn more_than_the_share_is_a_majority_and_the_share_itself_is_not() {
        for (share, ill, all, wanted) in [
            (50, 10, 20, Decision::Keep),
            (50, 11, 20, Decision::Raise),
            (50, 12, 20, Decision::Raise),
            (50, 1, 2, Decision::Keep),
            (50, 1, 1, Decision::Raise),
            (20, 4, 20, Decision::Keep),
            (20, 5, 20, Decision::Raise),
            (100, 20, 20, Decision::Keep),
            (50, 1, 0, Decision::Keep),
        ] {
            let decision = counted(share, ill).decide(&nodes(all), 0);
            assert_eq!(decision, wanted, "{ill} of {all} are ill, the share is {share}");
        }
    }

    #[test]
    fn nothing_is_decided_before_reports_and_verdict_were_listed() {
        let mut majority = Majority::new(50);
        majority.learn(ReportFact::Begin(ReportPart::Reports));
        nodes(20).into_iter().for_each(|node| majority.learn(ReportFact::Ill(node)));
        majority.learn(ReportFact::End(ReportPart::Reports));
        assert_eq!(majority.decide(&nodes(20), 0), Decision::Keep);
        majority.learn(ReportFact::Begin(ReportPart::Verdict));
        majority.learn(ReportFact::Verdict);
        majority.learn(ReportFact::End(ReportPart::Verdict));
        // A new leader raises nothing that stands.
        assert_eq!(majority.decide(&nodes(20), 0), Decision::Keep);
        assert_eq!(majority.standing(), Verdict::Together);
    }

    #[test]
    fn the_verdict_falls_when_few_have_been_ill_for_a_while() {
        let mut majority = counted(50, 12);
        assert_eq!(majority.decide(&nodes(20), 0), Decision::Raise);
        majority.learn(ReportFact::Verdict);
        let well = |majority: &mut Majority, from: usize, to: usize| {
            nodes(to).into_iter().skip(from).for_each(|n| majority.learn(ReportFact::Well(n)));
        };
        // Below the share, and above its half: the others are still part of the same roll-out.
        well(&mut majority, 6, 12);
        assert_eq!(majority.decide(&nodes(20), 1_000), Decision::Keep);
        assert_eq!(majority.decide(&nodes(20), 100_000), Decision::Keep);
        well(&mut majority, 5, 6);
        assert_eq!(majority.decide(&nodes(20), 100_000), Decision::Keep);
        // Ill again meanwhile: the time begins anew.
        majority.learn(ReportFact::Ill(NodeName::new("n05")));
        assert_eq!(majority.decide(&nodes(20), 120_000), Decision::Keep);
        majority.learn(ReportFact::Well(NodeName::new("n05")));
        assert_eq!(majority.decide(&nodes(20), 130_000), Decision::Keep);
        assert_eq!(majority.decide(&nodes(20), 159_999), Decision::Keep);
        assert_eq!(majority.decide(&nodes(20), 160_000), Decision::Lift);
        majority.learn(ReportFact::VerdictGone);
        assert!(!majority.is_quiet());
        well(&mut majority, 0, 5);
        assert!(majority.is_quiet());
    }

    #[test]
    fn a_report_of_an_unknown_node_and_one_that_a_list_lacks_do_not_count() {
        let mut majority = counted(50, 2);
        let others: BTreeSet<NodeName> = [NodeName::new("x"), NodeName::new("n00")].into();
        assert_eq!(majority.ill_among(&others), 1);
        majority.learn(ReportFact::Begin(ReportPart::Reports));
        majority.learn(ReportFact::Ill(NodeName::new("n01")));
        majority.learn(ReportFact::End(ReportPart::Reports));
        assert_eq!(majority.ill_among(&others), 0);
        assert_eq!(majority.ill_among(&nodes(2)), 1);
    }
}
