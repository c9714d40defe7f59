//! What Azure refuses of one guest while much else of the guest changes.

use super::Play;
use crate::actor::Company;
use crate::actor::crowd::CROWD;
use crate::actor::gate::FRONT;
use crate::poison::Poison;
use crate::scene::Layout;
use crate::tally::count;
use control::Options;

/// Pods of the guest before Azure refuses a new one.
const PODS: u64 = 24;
/// How many of them go, one after the other, while it does.
const GOING: u64 = 22;
/// How far apart, in milliseconds: in two minutes all have gone.
const APART_MS: (u64, u64) = (3_000, 8_000);
/// How often the new one may be attempted meanwhile: at once and after pauses of 4, 8, 16, 32 and
/// 60 s, and each time once more, to find the Service at fault.
const TRIES: u64 = 12;
/// So many Pods after the first refusal it has been told.
const TOLD_AFTER: u64 = 2;

/// So long after the time allowed our gate of a Pod is open at the latest.
const LET_THROUGH_MS: u64 = 30_000;

impl Play {
    /// S6: Azure takes no new address of a guest whose other Pods go one by one. Their writes have
    /// nothing of what is refused, so that they make no pause shorter. L4: the guest is told all
    /// the while that it is not as it asks.
    pub(super) fn be_crowded(&mut self) {
        if self.stage.scene.layout != Layout::Containers || self.stage.breach.is_some() {
            return;
        }
        let mut random = self.late.fork("crowd");
        let (namespace, slot) = CROWD;
        let name = format!("{namespace}/web-{slot}");
        self.stage.ledger.inputs += 1;
        self.company.crowd(0..PODS, &mut self.stage);
        self.come_to_rest();
        self.stage.poison = Some(Poison::of_endpoints(name.clone()));
        count(&mut self.stage.tally.checks, "S6");
        count(&mut self.stage.tally.checks, "L4");
        let mut refused = 0;
        for gone in 0..GOING {
            self.stage.ledger.inputs += 1;
            self.company.crowd(gone..PODS + 1, &mut self.stage);
            let apart_ms = random.between(APART_MS.0, APART_MS.1);
            self.stage.advance(self.stage.now_ms + apart_ms);
            let untold = self.stage.untold_refusal(&name).filter(|_| refused > TOLD_AFTER);
            if let Some(text) = untold {
                self.stage.fail("L4", text);
            }
            refused += u64::from(self.stage.poison.as_ref().is_some_and(|poison| poison.met));
        }
        let tries = self.stage.poison.take().map_or(0, |poison| poison.times);
        if tries > TRIES {
            let text = format!("{tries} tries at an address of {name} that is refused");
            self.stage.fail("S6", text);
        }
        Company::disperse(&mut self.stage);
        self.go(CROWD);
        self.come_to_rest();
        self.be_overdue();
    }

    /// L1: Azure takes no address of a new Pod with our gate, and the gate opens once the time
    /// allowed is over (docs/readiness-gates.md): it holds back no rolling update for good. That it
    /// does not open earlier is judged whenever a gate is written.
    fn be_overdue(&mut self) {
        let name = format!("default/{FRONT}");
        if self.stage.breach.is_some() || self.stage.is_name_stripped(&name) {
            return;
        }
        self.stage.ledger.inputs += 1;
        self.stage.poison = Some(Poison::of_endpoints(name));
        let pod = self.company.bring_late(&mut self.stage);
        let allowed_ms = Options::default().gate_timeout_ms;
        self.stage.advance(self.stage.now_ms + allowed_ms + LET_THROUGH_MS);
        let met = self.stage.poison.take().is_some_and(|poison| poison.met);
        if let Some(pod) = pod.filter(|_| met) {
            count(&mut self.stage.tally.checks, "L1");
            if !self.stage.is_let_through(&pod) {
                let text = format!("Pod {pod} waits at our gate, and the time allowed is over");
                self.stage.fail("L1", text);
            }
        }
        self.heal();
        self.company.dismiss_late(&mut self.stage);
        self.come_to_rest();
    }
}
