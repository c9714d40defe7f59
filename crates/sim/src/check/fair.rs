//! What Azure makes of writes while nothing goes wrong: it refuses none, and Services that come
//! together cost few writes of each load balancer.

use crate::stage::Stage;
use crate::tally::count;
use arm::{Condition, Method, Request};
use azure_emulator::Answer;
use std::collections::BTreeMap;

/// How Azure answers with lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    /// Each in one piece, as it is at one moment.
    Whole,
    /// In pages.
    Paged,
}

/// The writes of one round of a phase without faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// What Azure refused, and with which code.
    refused: Vec<String>,
    /// How often each resource was written.
    written: BTreeMap<String, u32>,
}

impl Round {
    /// Takes in Azure's answer to a write. In pages that go by number one of ours may stand on
    /// neither of two, because others went between them; where that happens twice, who makes it
    /// anew is right to, and to ask Azure first whether it stands.
    pub(super) fn note(&mut self, request: &Request, path: &str, answer: &Answer, lists: Lists) {
        let method = request.method;
        let made = request.condition == Condition::Absent && lists == Lists::Whole;
        let what = || {
            let mut segments = path.rsplit('/');
            let (name, kind) = (segments.next().unwrap_or(""), segments.next().unwrap_or(""));
            format!("{} {kind}/{name}", method.name())
        };
        match answer.status {
            // What is gone already is deleted.
            404 if method == Method::Delete => {}
            // A load balancer changes with its members, which are others' to write, too. But no
            // other client makes what is ours: a process that hears that it stands has made it and
            // forgotten.
            412 if !made => {}
            400.. => {
                let (status, code) = (answer.status, answer.code().unwrap_or("without a code"));
                let error = answer.body.as_ref().map(|body| &body["error"]["message"]);
                let why = error.and_then(serde_json::Value::as_str).unwrap_or_default();
                self.refused.push(format!("{} was refused with {status} {code}: {why}", what()));
            }
            _ => *self.written.entry(what()).or_default() += 1,
        }
    }
}

impl Stage {
    /// S6: where nothing goes wrong, Azure refuses nothing. L5: where Services come together, a
    /// load balancer is written at most three times: for those whose address is there, for those
    /// whose public IP is being made, and for those of two families, whose second one is made last.
    pub(crate) fn check_round(&mut self, together: bool) {
        let round = std::mem::take(&mut self.ledger.round);
        count(&mut self.tally.checks, "S6");
        if let Some(refused) = round.refused.first() {
            self.fail("S6", format!("{refused} (nothing goes wrong)"));
            return;
        }
        if together {
            count(&mut self.tally.checks, "L5");
            let often = |(what, times): &(&String, &u32)| {
                what.starts_with("PUT loadBalancers/") && **times > 3
            };
            if let Some((what, times)) = round.written.iter().find(often) {
                let text = format!("{what} was sent {times} times for Services that came together");
                self.fail("L5", text);
            }
        }
    }
}
