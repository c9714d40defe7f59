//! The body of a load balancer while Services get their parts, which are found by name meanwhile.

use super::rule;
use crate::own::parts::{Parts, View};
use model::azure::{Frontend, LoadBalancer, Probe, Rule};

/// A load balancer under edit.
#[derive(Debug)]
pub(crate) struct Body {
    balancer: LoadBalancer,
    parts: Parts,
    /// Whether a frontend, a rule or a probe may be other than it was.
    edited: bool,
}

impl Body {
    /// Begins with a load balancer as it stands.
    pub fn new(balancer: LoadBalancer) -> Self {
        let parts = Parts::of(&balancer);
        Self { balancer, parts, edited: false }
    }

    /// The same, with the parts that are known of it.
    pub fn of(view: View<'_>) -> Self {
        let (balancer, parts) = (view.whole().clone(), view.parts().clone());
        Self { balancer, parts, edited: false }
    }

    /// Whether a frontend, a rule or a probe may be other than it was.
    pub fn is_edited(&self) -> bool {
        self.edited
    }

    /// As far as it is edited.
    pub fn view(&self) -> View<'_> {
        View::new(&self.balancer, &self.parts)
    }

    /// Edits the whole of it, and finds its parts anew.
    pub fn edit(&mut self, edit: impl FnOnce(&mut LoadBalancer)) {
        edit(&mut self.balancer);
        self.parts = Parts::of(&self.balancer);
        self.edited = true;
    }

    /// The body.
    pub fn finish(self) -> LoadBalancer {
        debug_assert_eq!(self.parts, Parts::of(&self.balancer), "parts are found where they are");
        self.balancer
    }

    /// Puts a frontend in its place if it is there, else at the end.
    pub fn put_frontend(&mut self, wanted: Frontend) {
        let at = self.view().frontend_at(&wanted.name);
        let Some(at) = at.filter(|at| self.balancer.frontends[*at].name == wanted.name) else {
            self.edited = true;
            self.parts.add_frontend(&wanted, self.balancer.frontends.len());
            return self.balancer.frontends.push(wanted);
        };
        let there = &mut self.balancer.frontends[at];
        if *there == wanted {
            return;
        }
        let moves = there.address != wanted.address;
        *there = wanted;
        self.edited = true;
        if moves {
            self.parts.move_frontend(&self.balancer);
        }
    }

    /// Puts a rule in its place if it is there, else at the end.
    pub fn put_rule(&mut self, wanted: Rule) {
        let Some(at) = self.view().rule_at(&wanted.name) else {
            self.edited = true;
            self.parts.add_rule(&wanted, self.balancer.rules.len());
            return self.balancer.rules.push(wanted);
        };
        let there = &mut self.balancer.rules[at];
        let Some(after) = rule::renewed(there, wanted) else { return };
        let place = |r: &Rule| (r.protocol, r.backend_port, r.frontend.clone());
        let moves = place(there) != place(&after);
        *there = after;
        self.edited = true;
        if moves {
            self.parts.move_rule(&self.balancer);
        }
    }

    /// Puts a probe in its place if it is there, else at the end.
    pub fn put_probe(&mut self, wanted: Probe) {
        let Some(at) = self.view().probe_at(&wanted.name) else {
            self.edited = true;
            self.parts.add_probe(&wanted, self.balancer.probes.len());
            return self.balancer.probes.push(wanted);
        };
        let there = &mut self.balancer.probes[at];
        if let Some(after) = rule::renewed_probe(there, wanted) {
            *there = after;
            self.edited = true;
        }
    }
}
