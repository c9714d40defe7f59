//! The pages. Each is a function from views to a whole document.

mod backends;
mod change;
mod findings;
mod network;
mod overview;
mod parts;
mod plan;
mod service;
mod timeline;
mod topology;
mod whole;

pub use findings::{FindingsQuery, findings};
pub use overview::{OverviewQuery, Sort, overview};
pub use plan::{PlanQuery, plan};
pub use service::{ServiceQuery, ServiceView, explained, service};
pub use timeline::{TimelineQuery, Window, timeline};
pub use topology::topology;
pub use whole::TopologyQuery;

use crate::html::{Html, grouped};
use crate::view::Head;

/// The places of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The overview.
    Overview,
    /// The topology.
    Topology,
    /// The plan.
    Plan,
    /// The time line.
    Timeline,
    /// Findings.
    Findings,
    /// None of them.
    Elsewhere,
}

const PLACES: [(Place, &str, &str); 5] = [
    (Place::Overview, "/", "Overview"),
    (Place::Topology, "/topology", "Topology"),
    (Place::Plan, "/plan", "Plan"),
    (Place::Timeline, "/timeline", "Time line"),
    (Place::Findings, "/findings", "Findings"),
];

/// Whether a page follows what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// It is read again when something changes.
    Live,
    /// It takes long to make, and stays as it was made.
    Still,
}

/// A whole page around what `inner` writes.
fn frame(head: &Head, place: Place, title: &str, inner: impl FnOnce(&mut Html)) -> String {
    frame_at(head, place, title, Pace::Live, inner)
}

fn frame_at(
    head: &Head,
    place: Place,
    title: &str,
    pace: Pace,
    inner: impl FnOnce(&mut Html),
) -> String {
    let mut h = Html::document();
    h.tag("html", &[("lang", "en")], |h| {
        h.tag("head", &[], |h| write_head(h, title));
        h.tag("body", &[], |h| {
            h.leaf("a", &[("class", "skip"), ("href", "#main")], "Skip to the content");
            h.tag("header", &[], |h| write_header(h, head, place));
            let now = head.now_ms.to_string();
            let mut attributes =
                vec![("id", "main"), ("tabindex", "-1"), ("data-now", now.as_str())];
            if pace == Pace::Still {
                attributes.push(("data-still", ""));
            }
            h.tag("main", &attributes, |h| {
                troubles(h, head);
                inner(h);
            });
            h.tag("footer", &[], |h| {
                h.leaf("span", &[], &format!("Ballast {}", head.version));
                h.leaf("span", &[("id", "link"), ("class", "quiet")], "");
            });
            let attributes =
                [("id", "said"), ("class", "unseen"), ("aria-live", "polite"), ("role", "status")];
            h.leaf("p", &attributes, "");
        });
    });
    h.into_text()
}

fn write_head(h: &mut Html, title: &str) {
    h.void("meta", &[("charset", "utf-8")]);
    h.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    h.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    h.leaf("title", &[], &format!("{title} · Ballast"));
    h.void("link", &[("rel", "icon"), ("href", "/console.svg"), ("type", "image/svg+xml")]);
    h.void("link", &[("rel", "stylesheet"), ("href", "/console.css")]);
    h.leaf("script", &[("src", "/console.js"), ("defer", "")], "");
}

fn write_header(h: &mut Html, head: &Head, place: Place) {
    h.tag("a", &[("class", "brand"), ("href", "/")], |h| {
        h.leaf("strong", &[], "Ballast");
        h.leaf("span", &[], &head.cluster);
    });
    h.tag("nav", &[("aria-label", "Pages")], |h| {
        for (there, url, name) in PLACES {
            let name = match (there, head.findings) {
                (Place::Findings, 1..) => format!("{name} ({})", grouped(head.findings as u64)),
                _ => name.to_owned(),
            };
            match there == place {
                true => h.leaf("a", &[("href", url), ("aria-current", "page")], &name),
                false => h.leaf("a", &[("href", url)], &name),
            }
        }
    });
    if !head.leader.is_empty() {
        h.leaf("p", &[("class", "leader")], &head.leader);
    }
}

fn troubles(h: &mut Html, head: &Head) {
    if head.troubles.is_empty() {
        return;
    }
    h.tag("section", &[("class", "notice"), ("aria-label", "What holds up everything")], |h| {
        h.tag("ul", &[], |h| {
            for trouble in &head.troubles {
                h.leaf("li", &[], trouble);
            }
        });
        h.leaf("a", &[("href", "/findings")], "All findings");
    });
}

/// A page that says why there is no other.
#[must_use]
pub fn message(head: &Head, title: &str, text: &str) -> String {
    frame(head, Place::Elsewhere, title, |h| {
        h.leaf("h1", &[], title);
        h.leaf("p", &[("class", "lead")], text);
        h.tag("p", &[], |h| h.leaf("a", &[("href", "/")], "Go to the overview"));
    })
}
