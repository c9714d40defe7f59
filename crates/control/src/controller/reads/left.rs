//! Names of Services that are gone are noted before planning relies on them, and kept as long as
//! anything may bear them.

use crate::controller::Controller;
use model::kubernetes::Service;
use model::world::{Fact, Kind, Need};
use observe::apply::matters;
use plan::own::borne;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// No Service has these names any more.
    pub(crate) fn leave_names(&mut self, names: [Arc<str>; 3], now_ms: u64) {
        if self.notes_nothing() {
            self.world.abandoned.extend(names.iter().cloned());
        }
        self.reads.left.leave(names, now_ms);
    }

    /// A Service has its names.
    pub(crate) fn retake(&mut self, service: &Service) {
        let names = borne::of(service);
        if self.are_noted(&names) {
            self.reads.left.retake(service.uid.clone());
        }
        self.retake_names(names);
    }

    /// Whether the ledger has one of these names, or may come to have it.
    fn are_noted(&self, names: &[Arc<str>]) -> bool {
        names.iter().any(|name| self.kubernetes.ledger.may_have(name))
    }

    /// A Service has these names, or they are for an operator to decide on.
    pub(crate) fn retake_names(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        for name in names {
            self.reads.left.forget(&name);
            self.world.abandoned.remove(&name);
            self.world.departed.remove(&name);
        }
    }

    /// A write is over. What it has made may bear names of Services that went meanwhile.
    pub(crate) fn look_at_names(&mut self, causes: &BTreeSet<model::ServiceUid>) {
        if causes.iter().any(|uid| !self.world.kubernetes.services.contains_key(uid)) {
            self.reads.left.stir();
        }
    }

    /// Decides which names are to be noted, and which planning relies on.
    pub(crate) fn follow_names(&mut self, now_ms: u64) {
        if self.term.is_held() && self.term.is_certain() {
            self.confirm_left(now_ms);
        }
        self.recall_names(now_ms);
        let (ledger, held) = (&self.kubernetes.ledger, &self.world.kubernetes.services);
        self.reads.left.look_at_retaken(|uid| {
            let names = held.get(uid).map(|service| borne::of(service));
            names.into_iter().flatten().any(|name| ledger.may_have(&name))
        });
        let alone = self.notes_nothing();
        let turned = self.reads.left.turn(alone);
        if alone {
            // Names that were left since are relied on already.
            let names = self.reads.left.names().filter(|_| turned);
            self.world.abandoned.extend(names.cloned());
            self.world.departed.clear();
            return;
        }
        if !self.reads.left.take_stirred() && !turned {
            return;
        }
        let noted = &self.kubernetes.ledger.noted.gone;
        let beyond = self.reads.left.beyond(noted);
        let borne = borne::among(&self.world, &self.policy, &beyond);
        self.reads.left.note(noted, &borne);
        for name in self.reads.left.names() {
            if noted.has(name) {
                self.world.abandoned.insert(Arc::clone(name));
            } else {
                self.world.abandoned.remove(name);
            }
        }
        self.world.departed = borne;
    }

    /// Names of Services that went before the term are relied on from now on.
    fn confirm_left(&mut self, now_ms: u64) {
        let confirmed = self.reads.left.confirm();
        if self.notes_nothing() {
            self.world.abandoned.extend(confirmed);
        }
        self.decide_left(now_ms);
    }

    /// Takes in what another process has noted. A watch may lag: names count once lists are
    /// certain to show what that process wrote, as for all else that it left.
    fn recall_names(&mut self, now_ms: u64) {
        let known = self.world.kubernetes.ledger.known().is_some()
            && self.world.is_complete(&[Kind::Services])
            && self.term.is_certain();
        if self.reads.left.is_recalled() || !known {
            return;
        }
        let held = self.retake_noted();
        self.reads.left.recall(&self.kubernetes.ledger.noted.gone, &held, now_ms);
    }

    /// Takes names of standing Services out of the note. Services that the watch showed before the
    /// ledger was read wait for it, too. Returns the names of Services of which a name is noted.
    pub(crate) fn retake_noted(&mut self) -> BTreeSet<Arc<str>> {
        let mut held = BTreeSet::new();
        // Most often none is noted, and Services are many.
        if self.kubernetes.ledger.noted.gone.each().next().is_none() {
            return held;
        }
        let services = self.world.kubernetes.services.values();
        for service in services.filter(|service| matters(service)) {
            let names = borne::of(service);
            if self.are_noted(&names) {
                self.reads.left.retake(service.uid.clone());
                held.extend(names);
            }
        }
        held
    }

    /// Whether names have to be noted, or to be known, or a Service that is gone has to be decided
    /// on, before what bears the names is planned away.
    #[must_use]
    pub fn owes_names(&self) -> bool {
        if !self.term.is_held() {
            return false;
        }
        if self.notes_nothing() {
            return self.reads.left.is_in_doubt();
        }
        let (left, noted) = (&self.reads.left, &self.kubernetes.ledger.noted.gone);
        let lacks = left.wanted().is_some_and(|wanted| !wanted.is_within(noted));
        let unknown = !left.is_recalled() && noted.each().next().is_some();
        lacks || unknown || left.is_in_doubt()
    }

    /// Lists of resource groups that only Services name, and that Azure refuses to show.
    fn refused_lists(&self) -> BTreeSet<Need> {
        let is_refused = |need: &&Need| {
            let answered = self.world.azure.answered(need);
            self.named_group(need).is_some() && matches!(answered, Fact::Unreadable(_))
        };
        self.reads.store.keys().filter(is_refused).cloned().collect()
    }

    /// Forgets names that nothing bears. Another look is due when all lists were read again.
    pub(crate) fn forget_names(&mut self) {
        if self.reads.left.is_empty() {
            return;
        }
        let sent = self.lanes.all.values().filter_map(|lane| Some(lane.work.as_ref()?.sent_ms));
        let refused = self.refused_lists();
        let certain_ms = self.reads.left.certain_ms(&self.reads.store, &refused, sent.min());
        let Some(certain_ms) = certain_ms else { return };
        let old = self.reads.left.left_before(certain_ms);
        if old.is_empty() {
            return;
        }
        let borne = borne::among(&self.world, &self.policy, &old);
        for name in old.difference(&borne) {
            self.reads.left.forget(name);
            self.world.abandoned.remove(name);
            self.planning.dirty |= self.kubernetes.ledger.noted.gone.has(name);
        }
        self.reads.left.forget_undecided(certain_ms, &borne);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Leadership;
    use crate::gone::Gone;
    use crate::term::TakeoverBarrier;
    use fixture::{policy, service, world};

    /// A controller before a World in which a Service has all it asks for.
    fn beside() -> Controller {
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.world = world();
        controller
    }

    /// One whose ledger has these names.
    fn before(noted: &Gone) -> Controller {
        let mut controller = beside();
        controller.kubernetes.ledger.noted.gone = noted.clone();
        controller
    }

    /// What is to be noted of a Service that is gone, by the process that has seen it go.
    fn seen() -> (Controller, Gone) {
        let mut controller = beside();
        controller.world.kubernetes.services.clear();
        controller.leave_names(borne::of(&service(&[])), 0);
        controller.follow_names(0);
        let wanted = controller.reads.left.wanted().cloned().expect("it is decided");
        (controller, wanted)
    }

    #[test]
    fn a_name_is_relied_on_once_the_ledger_has_it() {
        let base: Arc<str> = service(&[]).uid.base_name().into();
        let (mut controller, wanted) = seen();
        assert!(wanted.has(&base) && !wanted.has(service(&[]).uid.as_str()), "{wanted:?}");
        assert!(controller.world.abandoned.is_empty() && controller.owes_names());
        assert!(controller.world.departed.contains(&base), "a Service that needs its place waits");
        controller.kubernetes.ledger.noted.gone = wanted.clone();
        controller.reads.left.stir();
        controller.follow_names(1);
        assert!(controller.world.abandoned.contains(&base) && !controller.owes_names());
        assert!(controller.world.departed.is_empty());
        assert_eq!(controller.reads.left.wanted(), Some(&wanted));
    }

    #[test]
    fn a_new_process_relies_on_what_is_noted_but_for_names_that_a_service_has() {
        let (controller, noted) = seen();
        let known = controller.reads.left.names().filter(|name| noted.has(name));
        let known: BTreeSet<Arc<str>> = known.cloned().collect();
        let mut fresh = before(&noted);
        fresh.world.kubernetes.services.clear();
        fresh.follow_names(5);
        assert_eq!(fresh.world.abandoned, known);
        let mut held = before(&noted);
        assert!(held.owes_names(), "what is noted is not known yet");
        held.follow_names(5);
        assert!(held.world.abandoned.is_empty());
        assert_eq!(held.reads.left.wanted(), Some(&Gone::default()), "it is taken out");
    }

    /// What another process has left is not let go before lists are certain to show it.
    #[test]
    fn what_is_noted_waits_for_the_barrier_of_the_term() {
        let (_, noted) = seen();
        let mut fresh = before(&noted);
        fresh.world.kubernetes.services.clear();
        fresh.term.barrier = TakeoverBarrier::Until(10);
        fresh.reads.left.stir();
        fresh.follow_names(5);
        assert!(fresh.world.abandoned.is_empty() && fresh.owes_names());
        assert_eq!(fresh.reads.left.wanted(), Some(&noted), "it stays noted");
        fresh.term.barrier = TakeoverBarrier::Done;
        fresh.follow_names(10);
        assert!(!fresh.world.abandoned.is_empty() && !fresh.owes_names());
    }

    /// A Service has the name again, which the new leader's watch has not shown yet, and the former
    /// leader has removed the name from the note.
    #[test]
    fn what_a_standby_has_read_in_the_ledger_decides_nothing_once_it_leads() {
        let (_, noted) = seen();
        let mut standby = before(&noted);
        standby.term.leadership = Leadership::Lost;
        standby.world.kubernetes.services.clear();
        standby.follow_names(5);
        assert!(!standby.world.abandoned.is_empty());
        standby.term.leadership = Leadership::Held;
        standby.doubt_ledger();
        assert!(standby.world.abandoned.is_empty());
        standby.world.kubernetes.ledger = world().kubernetes.ledger;
        standby.kubernetes.ledger.noted.gone = Gone::default();
        standby.follow_names(6);
        assert!(standby.world.abandoned.is_empty());
        assert_eq!(standby.reads.left.wanted(), Some(&Gone::default()));
    }

    #[test]
    fn without_a_ledger_a_process_relies_on_what_it_has_seen() {
        let mut controller = beside();
        controller.world.kubernetes.services.clear();
        controller.world.kubernetes.ledger = Fact::Known(Arc::default());
        controller.leave_names(borne::of(&service(&[])), 0);
        controller.follow_names(0);
        assert_eq!(controller.world.abandoned.len(), 3);
        assert!(!controller.owes_names());
    }
}
