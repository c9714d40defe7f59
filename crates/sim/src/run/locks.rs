//! Locks on what is one guest's: another operation's, for which no other guest waits, and a
//! management lock, which its owner learns of.

use super::Play;
use crate::check::tenants::is_refused;
use crate::poison::Poison;
use crate::scene::objects::service;
use crate::tally::count;
use kube_emulator::ObjectRef;

/// How long another operation has the lock.
const LOCKED_S: u64 = 300;
/// Within so long a guest's first write is sent, and refused.
const FIRST_MS: u64 = 40_000;
/// Within so long whoever has nothing to wait for is written for: far less than the lock lasts.
const OTHERS_MS: u64 = 15_000;
/// How long what goes before a public IP may take: closing its address, leaving its load balancer.
const FREED_MS: u64 = 15 * 60_000;
/// How soon it is looked at again.
const LOOK_MS: u64 = 1_000;
/// Within so long after the first refusal its owner learns what keeps a Service from going.
const TOLD_MS: u64 = 20_000;

impl Play {
    pub(super) fn come(&mut self, (namespace, slot): (&str, u64)) {
        let place = (namespace.to_owned(), format!("web-{slot}"));
        self.company.services.insert(place, service(namespace, slot));
        self.stage.ledger.inputs += 1;
        self.tend();
        self.stage.follow();
    }

    pub(super) fn go(&mut self, (namespace, slot): (&str, u64)) {
        let name = format!("web-{slot}");
        let object = ObjectRef::new("services", namespace, &name);
        let _ = self.stage.kubernetes.delete(object, self.stage.now_ms);
        self.company.services.remove(&(namespace.to_owned(), name));
        self.stage.ledger.inputs += 1;
        self.stage.follow();
    }

    /// Whether something has been refused on order.
    fn is_met(&self) -> bool {
        self.stage.poison.as_ref().is_some_and(|poison| poison.met)
    }

    /// S7: another operation has the lock on one guest's public IP. Who comes meanwhile does not
    /// wait for that: a 429 for a lock is no quota.
    pub(super) fn be_locked(&mut self) {
        if self.stage.breach.is_some() {
            return;
        }
        let (locked, other) = (("default", 42), ("team", 43));
        self.stage.poison = Some(Poison::locked("default/web-42".to_owned(), LOCKED_S));
        self.come(locked);
        self.stage.advance(self.stage.now_ms + FIRST_MS);
        if self.is_met() {
            count(&mut self.stage.tally.checks, "S7");
            let before = self.stage.ledger.attempts;
            self.come(other);
            self.stage.advance(self.stage.now_ms + OTHERS_MS);
            if self.stage.ledger.attempts == before {
                let text = "team/web-43 waits for a lock on what is another's".to_owned();
                self.stage.fail("S7", text);
            }
        }
        self.stage.poison = None;
        self.go(locked);
        self.go(other);
        self.come_to_rest();
    }

    /// L4: a management lock keeps a guest's public IP from being deleted: its condition says that
    /// it is held up. It comes alone, so that what is measured of it can be compared.
    pub(super) fn be_kept(&mut self) {
        if self.stage.breach.is_some() {
            return;
        }
        let guest = ("default", 44);
        let before = self.stage.before_newcomer();
        self.come(guest);
        self.come_to_rest();
        self.stage.check_newcomer(before.as_ref(), ("default", "web-44"));
        self.stage.poison = Some(Poison::kept("default/web-44".to_owned()));
        self.go(guest);
        // Azure deletes no public IP that a load balancer stands on: the deletion comes last, after
        // as many operations as there are.
        let end = self.stage.now_ms + FREED_MS;
        while !self.is_met() && self.stage.now_ms < end && self.stage.breach.is_none() {
            self.stage.advance(self.stage.now_ms + LOOK_MS);
        }
        self.stage.advance(self.stage.now_ms + TOLD_MS);
        let object = self.stage.kubernetes.get(ObjectRef::new("services", "default", "web-44"));
        if let Some(object) = object.ok().filter(|_| self.is_met()) {
            count(&mut self.stage.tally.checks, "L4");
            if !is_refused(&object) {
                let text = "default/web-44 cannot go, and its condition does not say so".to_owned();
                self.stage.fail("L4", text);
            }
        }
        self.stage.poison = None;
        self.come_to_rest();
    }
}
