//! The phases of a seed, in their order.

use super::Play;
use crate::check::differential::Form;
use crate::fault::Fault;

impl Play {
    /// Everything, to the last deletion. The end's form where nothing broke.
    pub(super) fn whole(&mut self) -> Option<Form> {
        let form = self.storm_and_heal()?;
        self.be_turned();
        self.vary();
        self.be_paused();
        self.be_unclaimed();
        self.be_handed_over();
        self.be_shared();
        self.be_filled();
        self.be_closed();
        self.be_worked_on();
        self.be_remained_on();
        self.be_asked();
        self.be_crammed();
        self.be_reported();
        self.be_blinded();
        self.be_puzzled();
        self.be_respelled();
        self.be_taken_over();
        self.be_overtaken();
        self.be_rewritten();
        self.be_refused_at_once();
        self.be_unrecorded();
        self.be_led_in_turns();
        if self.stage.scene.with.contains(&Fault::Hostile) {
            self.be_attacked();
        }
        self.stay_quiet();
        self.receive();
        self.be_locked();
        self.be_kept();
        self.be_crowded();
        self.leave();
        self.stage.check_books();
        self.stage.breach.is_none().then_some(form)
    }
}
