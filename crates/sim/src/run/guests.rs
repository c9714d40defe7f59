//! What others have while one is refused, and while a tenant claims what is theirs.

use super::keys::SHARED_IP;
use super::{HEAL_MS, POISONED_MS, Play};
use crate::actor::hostile::is_claim;
use crate::fault::Fault;
use crate::poison::Poison;
use crate::scene::Layout;
use crate::scene::objects::service;
use crate::tally::count;
use kube_emulator::ObjectRef;
use plan::ask::annotation::{RETRY, full};
use serde_json::json;

/// What was mended is tried within so long: far less than the minute between attempts at what is
/// refused again and again.
const MENDED_MS: u64 = 15_000;

/// In how many of a thousand runs its owner asks for another attempt, and edits nothing else.
const RETRIED: u64 = 300;

/// For so long a guest stays refused, and how often it is tried in that time: once a minute, and as
/// often again for the search of whose fault it is.
const REFUSED_MS: u64 = 10 * 60_000;
const TRIES: u64 = 30;

/// In how many of a thousand runs that it suits the other guest names a public IP of the estate.
const BROUGHT: u64 = 500;

impl Play {
    /// S7: while one Service is refused, all others come right.
    pub(super) fn come_right_beside_poison(&mut self) {
        if !self.stage.is_refused() {
            return;
        }
        let Some(poisoned) = self.stage.poison.as_ref().map(|poison| poison.service.clone()) else {
            return;
        };
        count(&mut self.stage.tally.checks, "S7");
        let end = self.stage.now_ms + POISONED_MS;
        loop {
            let unpublished = self.stage.unpublished();
            let wrong: Vec<String> = self
                .stage
                .untrue()
                .into_iter()
                .chain(unpublished)
                .filter(|line| !line.starts_with(&format!("{poisoned} ")))
                // A Pod's address stays with the namespace that had it first.
                .filter(|line| !line.split(' ').next().is_some_and(is_claim))
                .collect();
            if wrong.is_empty() || self.stage.breach.is_some() {
                return;
            }
            if self.stage.now_ms >= end {
                let text = format!("{} while {poisoned} is refused", wrong[0]);
                self.stage.fail("S7", text);
                return;
            }
            self.tend();
            self.stage.advance(self.stage.now_ms + 60_000);
        }
    }

    /// S9: a tenant claims everything that others have, and they keep it.
    pub(super) fn be_attacked(&mut self) {
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "S9");
        let before = self.stage.of_victims();
        self.stage.ledger.inputs += 1;
        self.company.claim(&mut self.stage);
        let start = self.stage.now_ms;
        while self.stage.breach.is_none() && self.stage.now_ms < start + HEAL_MS {
            self.tend();
            self.stage.advance(self.stage.now_ms + 60_000);
            if self.stage.settle(60_000) {
                break;
            }
        }
        if let Some(text) = self.stage.shared_unasked() {
            self.stage.fail("S9", text);
        }
        let after = self.stage.of_victims();
        if let Some((what, was)) = before.iter().find(|(what, was)| after.get(*what) != Some(was)) {
            let is = after.get(what).map_or("nothing", String::as_str);
            self.stage.fail("S9", format!("{what}: it was {was}, and is {is} for another tenant"));
        }
    }

    /// S6: what is refused again and again is tried ever more rarely. L4: its owner learns of it.
    fn stay_refused(&mut self) {
        if self.stage.breach.is_some() || !self.stage.is_refused() {
            return;
        }
        count(&mut self.stage.tally.checks, "S6");
        let times = |play: &Self| play.stage.poison.as_ref().map_or(0, |poison| poison.times);
        let before = times(self);
        self.stage.advance(self.stage.now_ms + REFUSED_MS);
        let tries = times(self) - before;
        if tries > TRIES {
            let text = format!("{tries} tries at what is refused, within {REFUSED_MS} ms");
            self.stage.fail("S6", text);
        }
        count(&mut self.stage.tally.checks, "L4");
        let refused = self.stage.poison.as_ref().map(|poison| poison.service.as_str());
        if let Some(text) = refused.and_then(|name| self.stage.untold_refusal(name)) {
            self.stage.fail("L4", text);
        }
    }

    /// S7: whoever mends a Service that was refused, or asks for another attempt because the cause
    /// in Azure is gone (`ballast retry`), does not wait for the next attempt at what it was.
    fn mend_guest(&mut self, (namespace, slot): (&str, u64)) {
        if self.stage.breach.is_some() || !self.stage.is_refused() {
            return;
        }
        self.stage.poison = None;
        count(&mut self.stage.tally.checks, "S7");
        let before = self.stage.ledger.attempts;
        let name = format!("web-{slot}");
        let ports = json!([{"name": "http", "port": 7_000, "targetPort": 8080,
            "protocol": "TCP", "nodePort": 30_080 + slot}]);
        let place = (namespace.to_owned(), name);
        let patch = match self.late.fork("retries").permille(RETRIED) {
            true => json!({"metadata": {"annotations": {RETRY: "now"}}}),
            false => json!({"spec": {"ports": ports}}),
        };
        self.company.apply(&mut self.stage, &place, &patch);
        self.stage.ledger.inputs += 1;
        self.stage.follow();
        self.stage.advance(self.stage.now_ms + MENDED_MS);
        if self.stage.ledger.attempts == before && self.stage.breach.is_none() {
            let text = format!("{namespace}/{} was mended, and nothing is tried anew", place.1);
            self.stage.fail("S7", text);
        }
    }

    /// Whether the guest that is not refused names a BYO public IP. It is Standard, and a hostile
    /// tenant may have been granted it.
    fn brings_public_ip(&self) -> bool {
        let scene = &self.stage.scene;
        let suits = scene.layout != Layout::PerSet && !scene.with.contains(&Fault::Hostile);
        suits && self.late.fork("a guest's public IP").permille(BROUGHT)
    }

    /// S7 and S9: beside Services that want nothing new, one comes that Azure refuses, and one that
    /// it does not. Both go again.
    pub(super) fn receive(&mut self) {
        if self.stage.breach.is_some() {
            return;
        }
        self.stage.note_settled();
        let guests = [("default", 40), ("team", 41)];
        let refused = format!("default/web-{}", guests[0].1);
        self.stage.ledger.refused_alone = Some(refused.clone());
        let poison = Poison::draw(refused, self.stage.scene.layout, &mut self.late);
        self.stage.poison = Some(poison);
        let brings = self.brings_public_ip();
        for (namespace, slot) in guests {
            let place = (namespace.to_owned(), format!("web-{slot}"));
            let mut guest = service(namespace, slot);
            if brings && slot == guests[1].1 {
                guest["metadata"]["annotations"][full("azure-pip-name")] = json!(SHARED_IP);
            }
            self.company.services.insert(place, guest);
        }
        self.tend();
        self.stage.advance(self.stage.now_ms + 60_000);
        self.come_right_beside_poison();
        self.stay_refused();
        self.stage.ledger.refused_alone = None;
        self.mend_guest(guests[0]);
        self.stage.poison = None;
        for (namespace, slot) in guests {
            let name = format!("web-{slot}");
            let now_ms = self.stage.now_ms;
            let object = ObjectRef::new("services", namespace, &name);
            let _ = self.stage.kubernetes.delete(object, now_ms);
            self.company.services.remove(&(namespace.to_owned(), name));
        }
        self.stage.ledger.inputs += 1;
        self.stage.follow();
        self.come_to_rest();
    }
}
