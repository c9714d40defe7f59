//! What `plan-check` finds in the plans of the process that leads.

use crate::check::Breach;
use crate::process::Hold;
use crate::stage::Stage;
use crate::tally::count;
use control::Effect;

impl Stage {
    /// A process has taken a step, before which it had planned so often.
    pub(crate) fn check_step(&mut self, number: usize, plans: u64, effects: &[Effect]) {
        self.check_said(number, effects);
        if self.processes[number].controller.counts().plans > plans {
            self.check_plan(number);
        }
    }

    /// Reads a plan as a stranger would.
    fn check_plan(&mut self, number: usize) {
        let process = &self.processes[number];
        let controller = &process.controller;
        // A standby plans of what it has read, and carries nothing out.
        let leads = matches!(process.hold, Hold::Always | Hold::Since(_));
        if !leads || controller.plan().changes.is_empty() {
            return;
        }
        let found = plan_check::check(controller.world(), controller.policy(), controller.plan());
        count(&mut self.tally.checks, "plan");
        if let (Some(violation), None) = (found.first(), &self.misplanned) {
            let at_ms = self.now_ms;
            let text = format!("process {number}: {violation}");
            self.trace.say(at_ms, || format!("the plan of {text}"));
            self.misplanned = Some(Breach { rule: "plan", text, at_ms });
        }
    }
}
