//! What handing public IPs over comes to.

use super::plan::{ChangeView, changes, render_changes};
use crate::output::{Ink, Paint};
use explain::adoption::{Adoption, Handover};
use explain::forecast::Forecast;
use model::World;
use serde::Serialize;

/// The action in JSON of `--undo`, after which the public IPs are BYO ones.
const UNDO: &str = "undo";

/// What `ballast adopt -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdoptionDocument {
    /// `adopt`, or `undo`.
    pub action: &'static str,
    /// What is written now: tags of public IPs.
    pub changes: Vec<ChangeView>,
    /// What the controller writes once it has seen the tags.
    pub then: Vec<ChangeView>,
    /// The Services that use the public IPs.
    pub services: Vec<String>,
}

impl AdoptionDocument {
    /// Of what was found.
    #[must_use]
    pub fn of(found: &Adoption, world: &World, handover: Handover) -> Self {
        let now = Forecast { changes: found.changes.clone(), ..Forecast::default() };
        Self {
            action: match handover {
                Handover::ToBallast => "adopt",
                Handover::ToOperator => UNDO,
            },
            changes: changes(&now, world),
            then: changes(&found.then, world),
            services: found.users.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The whole text.
#[must_use]
pub fn render(document: &AdoptionDocument, paint: Paint) -> String {
    let mut text = render_changes(&document.changes, paint);
    if !document.then.is_empty() {
        text.push_str(&format!("\n{}\n", paint.ink(Ink::Bold, "Ballast then writes:")));
        text.push_str(&render_changes(&document.then, paint));
    }
    let names: Vec<&str> = document.changes.iter().map(|change| change.name.as_str()).collect();
    let (names, services) = (names.join(", "), document.services.join(", "));
    let last = match document.services.len() {
        1 => "Service",
        _ => "the last of the Services",
    };
    text.push_str(&match document.action {
        UNDO => format!(
            "\nFrom its next check on (--check-interval) Ballast never deletes {names}: until then \
             do not delete Service {services}.\n"
        ),
        _ => format!("\nFrom then on Ballast deletes {names} with {last} {services}.\n"),
    });
    text
}
