//! L5 of reads: while nothing changes, each list is read once in every interval of the look for
//! drift (docs/drift.md), and not much more often. Azure's limits of reads are the subscription's:
//! what one client reads in vain another one lacks.

use crate::path::bare_path;
use crate::stage::{Sent, Stage};
use crate::tally::count;
use arm::{Method, Request, Target};
use std::collections::BTreeMap;

/// The interval, where the command line says nothing.
const INTERVAL_MS: u64 = 120_000;
/// Reads of one list beside those: after a start, and where several pages lacked something.
const SPARE: u64 = 10;

/// How often each life of a process has read each path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    times: BTreeMap<(usize, u64, String), u64>,
}

impl Stage {
    /// A call to Azure is about to be sent. Polls and further pages go where Azure's answer says,
    /// which may be a path, too.
    pub(super) fn note_look(&mut self, sent: &Sent, request: &Request) {
        let begins = match &request.target {
            Target::Path(path) => !path.to_lowercase().contains("skiptoken="),
            Target::Url(_) => false,
        };
        if request.method == Method::Get && begins {
            let key = (sent.process, sent.epoch, bare_path(request).to_lowercase());
            *self.ledger.looks.times.entry(key).or_default() += 1;
        }
    }

    /// Nothing changes from now on.
    pub(crate) fn begin_looks(&mut self) {
        self.ledger.looks = Looks::default();
    }

    /// L5: what was read too often in a time in which nothing has changed.
    pub(crate) fn check_looks(&mut self, passed_ms: u64) {
        count(&mut self.tally.checks, "L5");
        let most = passed_ms / INTERVAL_MS * 3 / 2 + SPARE;
        let often = self.ledger.looks.times.iter().find(|(_, times)| **times > most);
        if let Some(((number, _, path), times)) = often {
            let text = format!("process {number} has read {path} {times} times, and all was right");
            self.fail("L5", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, objects};

    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn at_rest_lists_are_read_once_in_an_interval() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        stage.create(objects::service("default", 0));
        assert!(stage.settle(86_400_000));
        stage.begin_looks();
        let until_ms = stage.now_ms + HOUR_MS;
        stage.advance(until_ms);
        assert!(!stage.ledger.looks.times.is_empty(), "drift is looked for");
        stage.check_looks(HOUR_MS);
        assert_eq!(stage.breach, None);
        stage.check_looks(HOUR_MS / 4);
        let text = stage.breach.take().map(|breach| breach.text).unwrap_or_default();
        assert!(text.contains("has read"), "{text}");
    }
}
