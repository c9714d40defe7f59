//! Tags that annotations set on public IPs are noted in the ledger before they are set, so that
//! they go with the annotation, whichever process runs then.
//!
//! # Guarantees
//! - A public IP is not written with such a tag before the ledger has it, where there is a ledger
//!   with room for it.
//! - A key stays noted while the public IP has it, or may come to have it.

use crate::controller::Controller;
use model::azure::tag;
use model::ledger::SetTags;
use model::plan::Change;
use model::world::Fact;
use model::{Group, ResourceId, ServiceUid};
use std::collections::BTreeSet;

impl Controller {
    /// Decides what is to be noted: what the plan sets, and what was set, as long as it may stand.
    pub(crate) fn follow_tags(&mut self) {
        if self.world.kubernetes.ledger == Fact::Unknown {
            return;
        }
        let noted = &self.kubernetes.ledger.noted.tags;
        let mut wanted = SetTags::default();
        for (ip, key) in noted.each().chain(self.kubernetes.tags.each()) {
            if self.may_have(ip, key) {
                wanted.put(ip, key);
            }
        }
        self.planning.plan.tags.each().for_each(|(ip, key)| wanted.put(ip, key));
        self.kubernetes.tags = wanted;
    }

    /// Whether a public IP has a tag that is not the config's, or may come to have it by a write
    /// that is on its way.
    fn may_have(&self, ip: &str, key: &str) -> bool {
        let Some((group, name)) = ip.split_once('/') else { return false };
        if tag(&self.policy.tags, key).is_some() {
            return false;
        }
        let group = Group::new(group);
        let id = self.policy.public_ip_id(&group, name);
        let written = self.world.in_flight.contains_key(&id);
        let unsure = written || !self.term.is_certain();
        let known = self.world.azure.public_ips.get(&group).and_then(Fact::known);
        let Some(all) = known.filter(|_| !unsure) else { return true };
        let tags = all.get(&id).and_then(|ip| ip.tags.as_ref());
        tags.is_some_and(|tags| tag(tags, key).is_some())
    }

    /// Whether a write waits for a note: until the tags that it sets are in the ledger, or until
    /// names that its Services have again are removed from it. Nothing waits without a ledger, or
    /// while the ledger cannot be read.
    pub(crate) fn awaits_note(&self, change: &Change) -> bool {
        let unread = self.world.kubernetes.ledger.known().is_none();
        !(unread || self.notes_nothing())
            && (self.sets_unnoted(&change.target)
                || change.causes.iter().any(|uid| self.reads.left.is_retaken(uid)))
    }

    /// Whether a write sets tags that are to be noted and are not.
    fn sets_unnoted(&self, id: &ResourceId) -> bool {
        let Some(keys) = self.planning.plan.tags.of(id) else { return false };
        let (wanted, noted) = (&self.kubernetes.tags, &self.kubernetes.ledger.noted.tags);
        keys.iter().any(|key| wanted.has(id, key) && !noted.has(id, key))
    }

    /// The Services that wait for it.
    pub(crate) fn wait_for_notes(&self) -> BTreeSet<ServiceUid> {
        let changes = self.planning.plan.changes.iter();
        let held = changes.filter(|change| self.awaits_note(change));
        held.flat_map(|change| change.causes.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gone::Gone;
    use crate::term::TakeoverBarrier;
    use fixture::{policy, public_ip, service, world};
    use model::azure::PublicIp;
    use model::plan::Resource;
    use std::sync::Arc;

    /// A controller of a World with a public IP, which has this tag.
    fn before(key: &str) -> (Controller, ResourceId) {
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.world = world();
        let ip = public_ip("kubernetes-web", None);
        let mut tags = ip.tags.clone().unwrap_or_default();
        tags.insert(key.into(), "x".into());
        let ip = PublicIp { tags: Some(tags), ..ip };
        let id = ip.id.clone();
        let all = controller.world.azure.public_ips.get_mut(&policy().group);
        let all = all.and_then(Fact::known_mut).expect("they are listed");
        all.insert(id.clone(), Arc::new(ip));
        (controller, id)
    }

    /// A write of a public IP, on account of a Service.
    fn write_of(id: &ResourceId) -> Change {
        let ip = Arc::new(PublicIp { id: id.clone(), ..public_ip("kubernetes-web", None) });
        let causes = BTreeSet::from([service(&[]).uid]);
        Change::delete(Resource::PublicIp(ip), causes, Vec::new())
    }

    fn set(id: &ResourceId, key: &str) -> SetTags {
        let mut set = SetTags::default();
        set.add(id, key);
        set
    }

    #[test]
    fn a_write_waits_until_its_tags_are_noted() {
        let (mut controller, id) = before("other");
        controller.planning.plan.tags = set(&id, "Team");
        controller.follow_tags();
        assert!(controller.awaits_note(&write_of(&id)));
        controller.kubernetes.ledger.noted.tags = controller.kubernetes.tags.clone();
        assert!(!controller.awaits_note(&write_of(&id)));
        // Without a ledger nothing could be waited for.
        controller.kubernetes.ledger.noted.tags = SetTags::default();
        let ledger = std::mem::take(&mut controller.world.kubernetes.ledger);
        controller.world.kubernetes.ledger = Fact::Known(Arc::default());
        assert!(!controller.awaits_note(&write_of(&id)));
        // Nor does it wait for a ledger that is left from a layout with a security group.
        controller.world.kubernetes.ledger = ledger;
        assert!(controller.awaits_note(&write_of(&id)));
        controller.policy.security_group_name = "".into();
        assert!(!controller.awaits_note(&write_of(&id)));
    }

    #[test]
    fn what_was_set_in_another_term_is_what_the_ledger_says() {
        let (mut controller, id) = before("team");
        controller.kubernetes.tags = set(&id, "team");
        controller.kubernetes.ledger.noted.tags = set(&id, "team");
        controller.doubt_ledger();
        controller.follow_tags();
        assert!(controller.kubernetes.tags.is_empty());
        // It is read.
        controller.world.kubernetes.ledger = world().kubernetes.ledger;
        controller.kubernetes.ledger.noted.tags = SetTags::default();
        controller.follow_tags();
        assert!(controller.kubernetes.tags.is_empty());
    }

    /// A process that begins now and has not seen the Service would take it for gone.
    #[test]
    fn a_write_waits_until_the_names_of_its_service_are_out() {
        let (mut controller, id) = before("other");
        let noted = "2026-01-01T00:00:00Z default/web\n";
        controller.kubernetes.ledger.noted.gone = Gone::read(noted);
        controller.retake(&service(&[]));
        assert!(controller.awaits_note(&write_of(&id)));
        controller.kubernetes.ledger.noted.gone = Gone::default();
        controller.follow_names(1);
        assert!(!controller.awaits_note(&write_of(&id)));
    }

    /// The ledger may lack the tags by now.
    #[test]
    fn a_write_waits_where_a_note_on_its_way_takes_its_tags_out() {
        let (mut controller, id) = before("other");
        controller.term.leadership = crate::event::Leadership::Held;
        controller.term.barrier = TakeoverBarrier::Done;
        controller.kubernetes.ledger.read_ms = Some(0);
        controller.kubernetes.ledger.noted.tags = set(&id, "team");
        controller.follow_tags();
        controller.go_on_with_ledger(1);
        assert!(controller.kubernetes.ledger.call.is_some(), "the note is on its way");
        controller.planning.plan.tags = set(&id, "team");
        controller.follow_tags();
        assert!(controller.awaits_note(&write_of(&id)));
    }

    /// The ledger may have the name by now.
    #[test]
    fn a_write_waits_for_a_note_on_its_way_that_has_a_name_of_its_service() {
        let (mut controller, id) = before("other");
        controller.term.leadership = crate::event::Leadership::Held;
        controller.kubernetes.ledger.read_ms = Some(0);
        let left = controller.world.kubernetes.services.remove(&service(&[]).uid);
        let left = left.expect("it is there");
        controller.leave_names(plan::own::borne::of(&left), 0);
        controller.follow_names(0);
        controller.go_on_with_ledger(1);
        assert!(controller.kubernetes.ledger.call.is_some(), "the note is on its way");
        controller.world.kubernetes.services.insert(left.uid.clone(), Arc::clone(&left));
        controller.retake(&left);
        controller.follow_names(1);
        assert!(controller.awaits_note(&write_of(&id)));
    }

    #[test]
    fn a_tag_stays_noted_while_the_public_ip_may_have_it() {
        let wanted = |key: &str, change: fn(&mut Controller, &ResourceId)| {
            let (mut controller, id) = before("team");
            controller.kubernetes.ledger.noted.tags = set(&id, key);
            change(&mut controller, &id);
            controller.follow_tags();
            controller.kubernetes.tags.has(&id, key)
        };
        assert!(wanted("team", |_, _| ()));
        assert!(!wanted("env", |_, _| ()), "it is gone");
        assert!(wanted("env", |controller, _| {
            controller.term.barrier = TakeoverBarrier::Until(1);
        }));
        assert!(wanted("env", |controller, id| {
            let flight = fixture::in_flight([]);
            controller.world.in_flight.insert(id.clone(), flight);
        }));
        assert!(wanted("env", |controller, _| {
            controller.world.azure.public_ips.clear();
        }));
        assert!(!wanted("team", |controller, _| {
            controller.policy.tags.insert("Team".into(), "y".into());
        }));
    }
}
