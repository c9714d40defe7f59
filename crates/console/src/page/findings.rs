//! Everything that is wrong, for those it concerns.

use super::parts::{self, Turn, url_of_page};
use super::{Place, frame};
use crate::view::{Fault, Head, Snapshot};
use model::ServiceName;

/// Findings on a page.
const SIZE: usize = 50;

/// Whom a finding concerns.
enum Whose<'a> {
    Whole,
    Service(&'a ServiceName),
    Pod(&'a ServiceName),
}

/// The page.
#[must_use]
pub fn findings(head: &Head, snapshot: &Snapshot, page: usize) -> String {
    let whole = snapshot.whole.iter().map(|f| (Whose::Whole, f));
    let services = snapshot.services.iter();
    let services = services.flat_map(|s| s.faults.iter().map(|f| (Whose::Service(&s.name), f)));
    let pods = snapshot.pods.iter();
    let pods = pods.flat_map(|(name, all)| all.iter().map(|f| (Whose::Pod(name), f)));
    let mut all: Vec<(Whose<'_>, &Fault)> = whole.chain(services).chain(pods).collect();
    all.sort_by_key(|(_, fault)| fault.grade);
    frame(head, Place::Findings, "Findings", |h| {
        h.leaf("h1", &[], "Findings");
        if all.is_empty() {
            h.leaf("p", &[("class", "lead")], "Nothing is wrong.");
            let text = "A Service that asks for something impossible is named here, with the \
                        annotation, its value and what is allowed.";
            h.leaf("p", &[("class", "quiet")], text);
            return;
        }
        let url = url_of_page("/findings", &[]);
        let turn = Turn { url: &url, page, size: SIZE, total: all.len(), noun: "findings" };
        for (whose, fault) in all.get(turn.range()).unwrap_or_default() {
            h.tag("article", &[("class", "finding")], |h| {
                h.tag("h2", &[], |h| match whose {
                    Whose::Whole => h.text("Everything"),
                    Whose::Service(name) => parts::service_link(h, name),
                    Whose::Pod(name) => h.text(&format!("Pod {name}")),
                });
                parts::fault(h, fault, head.now_ms);
            });
        }
        turn.pager(h);
    })
}
