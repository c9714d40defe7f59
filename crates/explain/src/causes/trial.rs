//! Plans with one thing altered, to see what it is the cause of.

use super::compare::{Effect, align, compare};
use super::input::{Input, Nature, Scope, Setting, Way};
use super::sheet::{Own, Stage, own};
use super::{Source, Wire};
use crate::forecast::settle;
use model::azure::FrontendAddress;
use model::policy::Layout;
use model::report::{Finding, Severity, State};
use model::world::Fact;
use plan::own::Base;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often an annotation is left out because it does not go with what is tried.
const CONCESSIONS: usize = 4;

/// What becomes of a Service.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Its part in Azure and Kubernetes.
    pub own: Vec<Own>,
    state: Option<State>,
    refusals: Vec<Finding>,
}

/// What came of altering one thing.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    /// How it was altered.
    pub nature: Option<Nature>,
    /// What differs, if anything does.
    pub effect: Option<Effect>,
    /// What differs also in what the Service as it is does not have.
    pub elsewhere: Option<Effect>,
    /// Why the Service as it is would be refused then.
    pub refusal: Option<Finding>,
}

/// A Service in a World that is settled without it, and all that it may depend on.
pub(super) struct Bench<'a> {
    /// How bodies are written.
    pub wire: &'a Wire,
    /// The Service and what it is planned on.
    pub setting: Setting,
    /// What it may depend on.
    pub inputs: Vec<Input>,
    /// What becomes of it.
    pub outcome: Outcome,
}

impl<'a> Bench<'a> {
    /// Plans the Service as it is.
    ///
    /// Other Services are left out, and so is what they have in Azure, unless that changes
    /// something for this one: each trial then costs what one Service costs.
    pub fn new(wire: &'a Wire, mut setting: Setting, inputs: Vec<Input>) -> Self {
        let outcome = outcome(wire, &setting, Scope::Service);
        for smaller in bare(&setting).into_iter().chain([alone(&setting)]) {
            let other = self::outcome(wire, &smaller, Scope::Everything);
            if compare(&outcome.own, &other.own).is_empty() {
                setting = smaller;
                break;
            }
        }
        Self { wire, setting, inputs, outcome }
    }

    /// What an input is the cause of, by the first way that shows something.
    pub fn effect(&self, at: usize, without: &[usize]) -> Trial {
        let mut last = Trial::default();
        let ways = self.inputs.get(at).into_iter().flat_map(|input| &input.ways);
        for way in ways {
            let trial = self.effect_of(way, Some(at), without);
            if trial.effect.is_some() {
                return trial;
            }
            if way.nature == Nature::Removal || trial.elsewhere.is_some() {
                last = trial;
            }
        }
        last
    }

    /// What a way of altering the setting changes. Inputs that do not go with it are left out on
    /// both sides.
    pub fn effect_of(&self, way: &Way, of: Option<usize>, without: &[usize]) -> Trial {
        let mut trial = Trial { nature: Some(way.nature), ..Trial::default() };
        if let Some((seen, all)) = self.follow(way, of, without, &mut trial.refusal) {
            trial.effect = (!seen.is_empty()).then_some(seen);
            trial.elsewhere = (!all.is_empty()).then_some(all);
        }
        trial
    }

    fn follow(
        &self,
        way: &Way,
        of: Option<usize>,
        without: &[usize],
        refusal: &mut Option<Finding>,
    ) -> Option<(Effect, Effect)> {
        let mut left_out = without.to_vec();
        for _ in 0..=CONCESSIONS {
            let mut setting = self.setting.clone();
            for at in &left_out {
                setting = (self.removal(*at)?.alter)(&setting);
            }
            let other = outcome(self.wire, &(way.alter)(&setting), way.scope);
            if let Some(finding) = other.refusals.first() {
                refusal.get_or_insert_with(|| finding.clone());
                left_out.push(self.blamed(&other.refusals, of, &left_out)?);
                continue;
            }
            if left_out.is_empty() {
                let effect = compare(&self.outcome.own, &other.own);
                return (self.outcome.state == other.state).then(|| (effect.clone(), effect));
            }
            let first = outcome(self.wire, &setting, Scope::Service);
            if first.state != other.state || !first.refusals.is_empty() {
                return None;
            }
            let ours = &self.outcome.own;
            let effect = compare(&first.own, &other.own);
            return Some((effect.seen_from(&align(ours, &first.own), ours), effect));
        }
        None
    }

    fn removal(&self, at: usize) -> Option<&Way> {
        let way = self.inputs.get(at)?.ways.first()?;
        (way.nature == Nature::Removal && way.scope == Scope::Service).then_some(way)
    }

    fn blamed(&self, refusals: &[Finding], of: Option<usize>, taken: &[usize]) -> Option<usize> {
        (0..self.inputs.len()).find(|at| {
            let named = refusals.iter().any(|f| *f.key == *self.inputs[*at].key);
            named && Some(*at) != of && !taken.contains(at) && self.removal(*at).is_some()
        })
    }

    /// The input that keeps another one from having an effect.
    pub fn stronger(&self, at: usize) -> Option<&Source> {
        let others = (0..self.inputs.len()).filter(|i| *i != at && self.removal(*i).is_some());
        let mut found = others.filter(|i| self.effect(at, &[*i]).elsewhere.is_some());
        found.next().map(|i| &self.inputs[i].source)
    }
}

/// Without other Services; what they have in Azure stays.
fn alone(setting: &Setting) -> Setting {
    let mut alone = setting.clone();
    alone.world.kubernetes.services.clear();
    alone
}

/// Without other Services, their public IPs and their parts of load balancers. The security group
/// stays as it is: rules are shared, and priorities are counted on.
///
/// Only where there is one load balancer of a kind: among several, the crowd on each decides.
fn bare(setting: &Setting) -> Option<Setting> {
    if setting.policy.layout != Layout::Single {
        return None;
    }
    let mut bare = alone(setting);
    let others: BTreeSet<Base> =
        setting.world.kubernetes.services.keys().map(Base::of_service).collect();
    let theirs = |name: &str| Base::of(name).is_some_and(|base| others.contains(&base));
    let mut ips = BTreeSet::new();
    for balancer in bare.world.azure.balancers.known_mut()?.values_mut() {
        let balancer = Arc::make_mut(balancer);
        for frontend in balancer.frontends.iter().filter(|f| theirs(&f.name)) {
            if let FrontendAddress::Public(ip) = &frontend.address {
                ips.insert(ip.clone());
            }
        }
        balancer.frontends.retain(|f| !theirs(&f.name));
        balancer.rules.retain(|r| !theirs(&r.name));
        balancer.probes.retain(|p| !theirs(&p.name));
    }
    for facts in bare.world.azure.public_ips.values_mut().filter_map(Fact::known_mut) {
        facts.retain(|id, _| !ips.contains(id));
    }
    Some(bare)
}

/// Plans a Service into a World.
pub(super) fn outcome(wire: &Wire, setting: &Setting, scope: Scope) -> Outcome {
    let Setting { service, policy, world } = setting;
    let without = match scope {
        Scope::Service => world.clone(),
        Scope::Everything => settle(world.clone(), policy).0,
    };
    let mut with = without.clone();
    with.kubernetes.services.insert(service.uid.clone(), Arc::new(service.clone()));
    let (with, report) = settle(with, policy);
    let report = report.services.get(&service.uid);
    let findings = report.map(|r| r.findings.as_slice()).unwrap_or_default();
    Outcome {
        own: own(&with, &without, &Stage { uid: &service.uid, policy, wire }),
        state: report.map(|r| r.state),
        refusals: findings.iter().filter(|f| f.severity == Severity::Refusal).cloned().collect(),
    }
}
