//! What Azure refuses of one guest while much else of the guest changes.

use super::Play;
use crate::actor::Company;
use crate::actor::crowd::CROWD;
use crate::poison::Poison;
use crate::scene::Layout;
use crate::tally::count;

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
    }
}
