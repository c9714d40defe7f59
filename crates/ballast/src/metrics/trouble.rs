//! Which Services are in trouble, by name: the gauges beside it only count.
//!
//! # Guarantees
//! The work is one look at each Service. However many are in trouble, at most [`LISTED`] are named:
//! the first by namespace and name, so that two pages of one moment name the same.

use super::exposition::Exposition;
use super::table;
use control::{Controller, Leadership};
use model::ServiceName;
use model::report::State;
use std::collections::{BTreeMap, BTreeSet};

/// Services that are named.
const LISTED: usize = 100;
/// A Service waits long after this time, as in the alert BallastServiceWaitsLong.
const LONG_MS: u64 = 900_000;

/// Services in trouble, and what is wrong with each.
type Troubled<'r> = BTreeMap<&'r ServiceName, BTreeSet<&'static str>>;

pub(super) fn add(exposition: &mut Exposition, controller: &Controller, now_ms: u64) {
    // Of one process: a former leader does not name what it remembers beside the new one.
    let leads = controller.leadership() == Leadership::Held;
    let holds = &controller.world().holds;
    let mut troubled = Troubled::new();
    for (uid, service) in controller.report().services.iter().filter(|_| leads) {
        let since_ms = || controller.since_ms(uid).unwrap_or(now_ms);
        let waited_ms = || now_ms.saturating_sub(since_ms());
        for reason in reasons(service.state, holds.contains_key(uid), waited_ms) {
            troubled.entry(&service.name).or_default().insert(reason);
        }
    }
    name(exposition, &troubled);
}

/// What is wrong with a Service, in the words of its states. Azure may have rejected one that is
/// in another state, too.
fn reasons(
    state: State,
    is_set_aside: bool,
    waited_ms: impl Fn() -> u64,
) -> impl Iterator<Item = &'static str> {
    let state = match state {
        State::Refused | State::RefusedServing | State::Rejected => Some(state),
        State::Waiting | State::Removing => (waited_ms() > LONG_MS).then_some(state),
        State::Held | State::Programmed => None,
    };
    let rejected = is_set_aside.then_some(State::Rejected);
    state.into_iter().chain(rejected).map(State::word)
}

fn name(exposition: &mut Exposition, troubled: &Troubled<'_>) {
    for (name, reasons) in troubled.iter().take(LISTED) {
        for reason in reasons {
            let labels = [
                ("service_namespace", &*name.namespace),
                ("service_name", &*name.name),
                ("reason", *reason),
            ];
            exposition.add(&table::TROUBLE, &labels, 1);
        }
    }
    exposition.add(&table::TROUBLE_UNLISTED, &[], troubled.len().saturating_sub(LISTED));
}

#[cfg(test)]
mod tests {
    use super::super::exposition::Format;
    use super::*;

    #[test]
    fn the_first_are_named_and_the_others_counted() {
        let names: Vec<ServiceName> =
            (0..102).rev().map(|n| ServiceName::new("shop", format!("web-{n:03}"))).collect();
        let ahead = ServiceName::new("api", "z");
        let mut troubled: Troubled<'_> =
            names.iter().map(|name| (name, BTreeSet::from(["refused"]))).collect();
        troubled.insert(&ahead, BTreeSet::from(["waiting", "rejected"]));
        let mut exposition = Exposition::new(Format::Text);
        name(&mut exposition, &troubled);
        let text = exposition.finish();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let line = |namespace: &str, name: &str, reason: &str| {
            format!(
                "ballast_service_trouble{{service_namespace=\"{namespace}\",\
                 service_name=\"{name}\",reason=\"{reason}\"}} 1"
            )
        };
        assert_eq!(lines[0], line("api", "z", "rejected"));
        assert_eq!(lines[1], line("api", "z", "waiting"));
        assert_eq!(lines[2], line("shop", "web-000", "refused"));
        assert_eq!(lines[100], line("shop", "web-098", "refused"));
        assert_eq!(lines[101..], ["ballast_service_trouble_unlisted 3"]);
    }

    #[test]
    fn a_service_is_in_trouble_by_its_state_or_when_azure_rejects_it() {
        let of = |state, is_set_aside, waited_ms| -> Vec<&str> {
            reasons(state, is_set_aside, || waited_ms).collect()
        };
        assert_eq!(of(State::Refused, false, 0), ["refused"]);
        assert_eq!(of(State::RefusedServing, true, 0), ["refused_serving", "rejected"]);
        assert_eq!(of(State::Rejected, false, 0), ["rejected"]);
        for (state, word) in [(State::Waiting, "waiting"), (State::Removing, "removing")] {
            assert!(of(state, false, LONG_MS).is_empty());
            assert_eq!(of(state, false, LONG_MS + 1), [word]);
            assert_eq!(of(state, true, 0), ["rejected"]);
        }
        for state in [State::Held, State::Programmed] {
            assert!(of(state, false, u64::MAX).is_empty());
        }
    }
}
