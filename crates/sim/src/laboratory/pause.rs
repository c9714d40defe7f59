//! An operator pauses writes to Azure.

use super::Laboratory;
use control::Event;
use model::Pause;

impl Laboratory {
    /// The controller hears what the annotation of the Lease stops. One that was restarted is told
    /// again before it runs, as a process that reads the Lease before it leads.
    pub fn pause(&mut self, value: &str) {
        self.sequence += 1;
        let event = Event::Pause(Pause::read(value));
        self.due.insert((self.now_ms, self.sequence), event);
    }
}
