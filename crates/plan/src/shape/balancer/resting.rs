//! Services whose parts are all on a load balancer as in the last plan. While nothing has edited
//! its body that follows from the body, from what a Service asks and from its public IPs; what else
//! has a say is asked anew.

use super::{Build, seat_wait};
use crate::ask::Intent;
use crate::claim::choice::Chosen;
use crate::claim::contest;
use crate::claim::holder::{self, Address, Place};
use crate::draft::{Draft, Stance};
use crate::own::{is_claimed, name};
use crate::shape::memory::Held;
use crate::standing::public_ip;
use model::azure::FrontendAddress;
use model::{Family, ServiceUid};
use std::sync::Arc;

impl Build<'_> {
    /// Whether nothing is to be done for a Service.
    pub(super) fn rests(&self, draft: &Draft<'_>, uid: &ServiceUid, chosen: &Chosen) -> bool {
        let Some(intent) = self.asked(draft, uid) else { return false };
        let held = self.there.as_ref().and_then(|there| self.memory.seated(intent, there));
        held.is_some_and(|held| self.is_free(draft, intent, chosen, held))
    }

    /// Remembers a Service for which nothing was to be done.
    pub(super) fn note(&mut self, draft: &Draft<'_>, uid: &ServiceUid, chosen: &Chosen) {
        let (Some(intent), Some(there)) = (self.asked(draft, uid), &self.there) else { return };
        let free = |held: &&Held| self.is_free(draft, intent, chosen, held);
        let held = self.memory.found(intent).filter(free);
        if let Some(places) = held.and_then(|held| self.places(draft, intent, held)) {
            self.memory.seat(uid, there, &places);
        }
    }

    /// What a Service asks, where only it can say what is to be done for it: nothing is edited yet,
    /// and no Private Link Service stands anywhere.
    fn asked<'d>(&self, draft: &'d Draft<'_>, uid: &ServiceUid) -> Option<&'d Arc<Intent>> {
        let case = &draft.cases[uid];
        let Stance::Wanted(intent) = &case.stance else { return None };
        let alone = !self.after.is_edited() && self.linked.is_empty();
        (alone && is_claimed(draft.policy, case.service)).then_some(intent)
    }

    /// Whether its public IPs are on no other load balancer, and nothing has to happen before
    /// anything is put on this one.
    fn is_free(&self, draft: &Draft<'_>, intent: &Intent, chosen: &Chosen, held: &Held) -> bool {
        let Self { seats, drafted, .. } = self;
        let place = Place { seats, chosen, balancer: self.view(), drafted };
        let mut addresses = held.ips.iter().map(|(_, id, _)| Address::Public(id.clone()));
        seat_wait(draft, self).is_none()
            && addresses.all(|at| holder::elsewhere(draft, &place, intent, &at).is_none())
    }

    /// Where its own frontends stand on its public IPs, if none of its rules leads to a node port,
    /// which others may have a claim to.
    fn places(&self, draft: &Draft<'_>, intent: &Intent, held: &Held) -> Option<Vec<usize>> {
        let own = held.ips.iter().map(|(family, id, ip)| {
            let at = self.view().frontend_at(&name::frontend(intent, *family))?;
            let on_it = self.view().frontends[at].address == FrontendAddress::Public(id.clone());
            let addressed = ip.address.is_some_and(|address| Family::of(address) == *family);
            (on_it && addressed && public_ip::is_ready(draft, id)).then_some(at)
        });
        let mut families = intent.families.iter();
        let floats = held.ips.len() == intent.families.len()
            && families.all(|family| contest::backend_ports(intent, *family).is_empty());
        own.collect::<Option<Vec<usize>>>().filter(|_| floats)
    }
}
