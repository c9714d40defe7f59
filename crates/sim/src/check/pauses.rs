//! S5 while an operator has paused writes to Azure (docs/operating.md, "Pausing all writes"): from
//! the time by which every process knows of it none begins. L4: a Service that waits says why.

use super::tenants::is_refused;
use crate::process::Hold;
use crate::stage::Stage;
use crate::tally::count;
use control::Event;
use kube_emulator::ObjectRef;
use model::Pause;
use model::pause::PAUSE;

/// Within so long every process knows of a pause.
pub(crate) const HEARD_MS: u64 = 6_000;

/// Values of the annotation, with what stands in the paths of what each stops; nothing stands for
/// everything.
pub(crate) const PAUSES: [(&str, &[&str]); 4] = [
    ("true", &[]),
    // It names no kind: a mistake in typing must not let through what it was to stop.
    ("loadBalancer", &[]),
    ("loadBalancers", &["/loadbalancers/"]),
    (
        "publicipaddresses, networkSecurityGroups,serviceGateways",
        &["/publicipaddresses/", "/networksecuritygroups/", "/servicegateways/"],
    ),
];

/// What an operator has paused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused {
    /// Which of [`PAUSES`].
    which: usize,
    since_ms: u64,
}

impl Stage {
    /// An operator pauses writes by the annotation of the Lease, or ends the pause. A process that
    /// takes no lease reads it all the time.
    pub(crate) fn pause_writes(&mut self, which: Option<usize>) {
        let value = which.map_or("", |at| PAUSES[at].0);
        self.trace.say(self.now_ms, || format!("an operator: the Lease says {PAUSE}={value:?}"));
        let since_ms = self.now_ms;
        self.ledger.paused = which.map(|which| Paused { which, since_ms });
        self.lease.annotate(PAUSE, value, since_ms);
        for number in 0..self.processes.len() {
            if self.processes[number].hold == Hold::Always {
                self.tell(number, Event::Pause(Pause::read(value)));
            }
        }
    }

    /// What a process that takes no lease reads on it before anything else.
    pub(crate) fn heard_of_pause(&self) -> Option<Event> {
        let value = self.ledger.paused.map(|paused| PAUSES[paused.which].0)?;
        Some(Event::Pause(Pause::read(value)))
    }

    /// What a process that runs for leader has read on the Lease, before it hears whether it leads.
    pub(crate) fn learn_pause(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let pause = process.election.annotation(PAUSE).and_then(Pause::read);
        if process.paused != pause {
            process.paused.clone_from(&pause);
            self.tell(number, Event::Pause(pause));
        }
    }

    /// S5: a write is about to be sent, of this path in small letters.
    pub(super) fn check_pause(&mut self, path: &str) {
        let now_ms = self.now_ms;
        let paused = self.ledger.paused.filter(|paused| now_ms >= paused.since_ms + HEARD_MS);
        let Some(paused) = paused else { return };
        count(&mut self.tally.checks, "S5");
        let (value, stopped) = PAUSES[paused.which];
        if stopped.is_empty() || stopped.iter().any(|part| path.contains(part)) {
            self.fail("S5", format!("{path} is written, and an operator has paused {value:?}"));
        }
    }

    /// L4: a Service that waits for the end of a pause, and whose status says something else.
    pub(crate) fn untold_pause(&self, namespace: &str, name: &str) -> Option<String> {
        let service = self.kubernetes.get(ObjectRef::new("services", namespace, name)).ok()?;
        let says = service["status"].to_string();
        if !service["status"]["loadBalancer"]["ingress"].is_null() {
            return Some(format!("{namespace}/{name} has an address while writes are paused"));
        }
        let told = is_refused(&service) && says.contains("paused");
        (!told).then(|| format!("{namespace}/{name} waits for the end of a pause untold: {says}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, Scene, objects};
    use crate::swarm::Pace;
    use crate::weather::Weather;

    fn stage(processes: usize) -> Stage {
        let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 1_500 };
        let scene = Scene::plain(Layout::Single, 3, 7);
        let mut stage = Stage::new(scene, pace, Weather::Fair, processes);
        stage.advance(stage.now_ms + 60_000);
        stage
    }

    fn ask(stage: &mut Stage) {
        stage.advance(stage.now_ms + HEARD_MS);
        stage.create(objects::service("default", 0));
        stage.advance(stage.now_ms + 120_000);
    }

    #[test]
    fn nothing_is_written_during_a_pause_and_its_service_is_told() {
        for processes in [1, 2] {
            for which in 0..PAUSES.len() {
                let mut stage = stage(processes);
                stage.pause_writes(Some(which));
                ask(&mut stage);
                let leader = stage.lease.holder.map_or(0, |(number, _)| number);
                stage.kill(leader, "restarted during a pause");
                stage.advance(stage.now_ms + 120_000);
                assert_eq!(stage.breach, None);
                assert_eq!(stage.untold_pause("default", "web-0"), None);
                stage.pause_writes(None);
                stage.advance(stage.now_ms + HEARD_MS);
                assert!(stage.settle(1_800_000));
                assert_eq!(stage.untrue(), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn a_write_during_a_pause_is_seen() {
        let mut stage = stage(1);
        stage.pause_writes(Some(0));
        stage.tell(0, Event::Pause(None));
        ask(&mut stage);
        assert_eq!(stage.breach.map(|breach| breach.rule), Some("S5"));
    }
}
