//! When the lease may be taken and when to look again: plain functions of the record and the time.

use crate::record::{Record, Sighting};
use crate::settings::LeaseSettings;

/// What a look at the record says to one that wants the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is ours, nobody's, or has run out: it may be written.
    Free,
    /// Another has it.
    Taken {
        /// When it runs out, if it is not renewed.
        ends_ms: u64,
    },
}

/// Whether the lease may be written with our name.
#[must_use]
pub fn judge(
    record: &Record,
    sighting: &Sighting,
    identity: &str,
    lease_ms: u64,
    now_ms: u64,
) -> Verdict {
    let holder = record.holder();
    let ends_ms = sighting.ends_ms(record, lease_ms);
    if holder.is_empty() || holder == identity || ends_ms <= now_ms {
        return Verdict::Free;
    }
    Verdict::Taken { ends_ms }
}

/// Who waits for the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that may write.
    Leads {
        /// Until when.
        deadline_ms: u64,
    },
    /// One that wants to.
    StandsBy {
        /// When the other's lease runs out, where there is one.
        ends_ms: Option<u64>,
    },
}

/// Until the next try, but not past the deadline: losing the lease is told on time, and one that
/// has run out is taken at once. `spread` lengthens a wait, so that not all look at one moment.
#[must_use]
pub fn pause_ms(
    role: Role,
    settings: &LeaseSettings,
    now_ms: u64,
    spread: impl Fn(u64) -> u64,
) -> u64 {
    let (wait_ms, at_ms) = match role {
        Role::Leads { deadline_ms } => (settings.retry_ms, Some(deadline_ms)),
        Role::StandsBy { ends_ms } => (settings.look_ms(), ends_ms),
    };
    let wait_ms = spread(wait_ms);
    at_ms.map_or(wait_ms, |at| wait_ms.min(at.saturating_sub(now_ms).saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::longest_spread;
    use serde_json::json;

    fn held_by(holder: &str, seconds: u64) -> Record {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": seconds});
        Record::new(json!({"metadata": {"resourceVersion": "7"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_lease_is_free_when_it_is_ours_or_nobodys_or_has_run_out() {
        let seen = |record: &Record| Sighting::of(record, None, 1_000);
        let verdict = |holder, now_ms| {
            let record = held_by(holder, 15);
            judge(&record, &seen(&record), "me", 15_000, now_ms)
        };
        assert_eq!(verdict("me", 1_000), Verdict::Free);
        assert_eq!(verdict("", 1_000), Verdict::Free);
        assert_eq!(verdict("other", 15_999), Verdict::Taken { ends_ms: 16_000 });
        assert_eq!(verdict("other", 16_000), Verdict::Free);
        // Who asks for longer is given longer.
        let record = held_by("other", 60);
        let longer = judge(&record, &seen(&record), "me", 15_000, 16_000);
        assert_eq!(longer, Verdict::Taken { ends_ms: 61_000 });
    }

    #[test]
    fn one_that_stands_by_looks_twice_as_often_as_the_leader_renews() {
        let settings = LeaseSettings::default();
        let pause = |role, now_ms| pause_ms(role, &settings, now_ms, longest_spread);
        assert_eq!(pause(Role::Leads { deadline_ms: 10_000 }, 0), 2_400);
        assert_eq!(pause(Role::Leads { deadline_ms: 10_000 }, 9_000), 1_001);
        assert_eq!(pause(Role::StandsBy { ends_ms: None }, 0), 1_200);
        assert_eq!(pause(Role::StandsBy { ends_ms: Some(15_000) }, 0), 1_200);
        assert_eq!(pause(Role::StandsBy { ends_ms: Some(15_000) }, 14_900), 101);
        assert_eq!(pause(Role::StandsBy { ends_ms: Some(15_000) }, 20_000), 1);
    }

    #[test]
    fn by_default_three_seconds_suffice_for_a_successor_whose_calls_take_half_a_second() {
        let settings = LeaseSettings::default();
        assert_eq!(settings.longest_vacancy_ms(), 1_200);
        assert_eq!(settings.longest_silence_ms(), 16_200);
        assert!(settings.longest_vacancy_ms() + 3 * 500 < 3_000);
    }
}
