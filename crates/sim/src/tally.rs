//! Counts of what was met.

use std::collections::{BTreeMap, BTreeSet};

/// What controllers do in the course of many seeds: each a point to die before and after.
const EFFECTS: [&str; 16] = [
    "GET",
    "PUT loadbalancers",
    "DELETE loadbalancers",
    "PUT publicipaddresses",
    "DELETE publicipaddresses",
    "PUT networksecuritygroups",
    "PUT natgateways",
    "DELETE natgateways",
    "PUT virtualmachinescalesets",
    "PUT virtualmachines",
    "POST updateservices",
    "POST updateaddresslocations",
    "PATCH service finalizers",
    "PATCH service status",
    "PATCH pod finalizers",
    "POST event",
];

/// How often each thing was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Faults by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Crashes by the effect they happened at, before and after it.
    pub crashes: BTreeMap<String, u64>,
    /// Effects that were to be carried out: where a process can die before and after.
    pub effects: BTreeMap<String, u64>,
    /// Moves of actors by kind.
    pub moves: BTreeMap<&'static str, u64>,
    /// Checks made, by rule.
    pub checks: BTreeMap<&'static str, u64>,
    /// Seeds that each rule has judged at least once.
    pub judged: BTreeMap<&'static str, u64>,
    /// Layouts.
    pub layouts: BTreeMap<&'static str, u64>,
    /// Things that happened: calls, answers, deliveries, wake-ups, moves.
    pub steps: u64,
    /// Steps of controllers.
    pub controller_steps: u64,
    /// Writes that Azure carried out.
    pub azure_writes: u64,
    /// Simulated time, in milliseconds.
    pub simulated_ms: u64,
}

impl Tally {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        let Self {
            faults,
            crashes,
            effects,
            moves,
            checks,
            judged,
            layouts,
            steps,
            controller_steps,
            azure_writes,
            simulated_ms,
        } = other;
        add(&mut self.faults, faults);
        add(&mut self.crashes, crashes);
        add(&mut self.effects, effects);
        add(&mut self.moves, moves);
        add(&mut self.checks, checks);
        add(&mut self.judged, judged);
        add(&mut self.layouts, layouts);
        self.steps += steps;
        self.controller_steps += controller_steps;
        self.azure_writes += azure_writes;
        self.simulated_ms += simulated_ms;
    }
}

impl Tally {
    /// Points at which no process has died, although it could have: around each effect that was
    /// carried out, and around those that every large number of seeds carries out.
    #[must_use]
    pub fn crashes_never_met(&self) -> Vec<String> {
        let sides = |effect: &str| ["before", "after"].map(|side| format!("{side} {effect}"));
        let known = self.effects.keys().map(String::as_str).chain(EFFECTS);
        let known: BTreeSet<&str> = known.collect();
        let points = known.into_iter().flat_map(sides);
        points.filter(|point| !self.crashes.contains_key(point)).collect()
    }
}

fn add<K: Ord + Clone>(own: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        *own.entry(key.clone()).or_insert(0) += count;
    }
}

/// Counts one more.
pub fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_insert(0) += 1;
}
