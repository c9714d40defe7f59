//! Whether a controller is of use, and what stands in its way: what `/readyz` says.

use crate::listing::unlisted;
use control::Controller;
use model::obstacle::{Attempts, Obstacle, Subject};
use model::world::Need;

/// Lines of detail that `/readyz` has.
const DETAILS: usize = 10;

/// What `/readyz` says: no ids are in it, for everybody may read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Why the controller is of no use yet: what is not listed, reads of Azure without which
    /// Services are not planned, and what forbids to plan at all.
    pub reasons: Vec<Line>,
    /// The first of what stands in the way.
    pub details: Vec<Line>,
    /// How many more there are.
    pub more: usize,
}

/// One line about trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    text: String,
    attempts: Option<Attempts>,
}

impl Line {
    fn plain(text: String) -> Self {
        Self { text, attempts: None }
    }

    fn of(obstacle: &Obstacle) -> Self {
        Self { text: obstacle.brief(), attempts: Some(obstacle.attempts()) }
    }

    /// The line as of now.
    #[must_use]
    pub fn text(&self, now_ms: u64) -> String {
        let attempts = self.attempts.map(|attempts| attempts.text(now_ms)).unwrap_or_default();
        format!("{}{attempts}", self.text)
    }
}

impl Readiness {
    /// Of a controller, after a step.
    #[must_use]
    pub fn of(controller: &Controller) -> Self {
        let report = controller.report();
        let needed = |obstacle: &&Obstacle| match &obstacle.about {
            Subject::Read(need) => is_needed(controller, need, obstacle),
            Subject::Ledger => controller.awaits_ledger(),
            _ => false,
        };
        let mut reasons: Vec<Line> = unlisted(controller).into_iter().map(Line::plain).collect();
        reasons.extend(report.obstacles.iter().filter(needed).map(Line::of));
        let frozen = report.findings.iter().filter(|f| f.rule == plan::OTHER_LAYOUT_STANDS);
        reasons.extend(frozen.map(|finding| Line::plain(finding.to_string())));
        let details = report.obstacles.iter().take(DETAILS).map(Line::of).collect();
        Self { reasons, details, more: report.obstacles.len().saturating_sub(DETAILS) }
    }
}

fn is_needed(controller: &Controller, need: &Need, obstacle: &Obstacle) -> bool {
    controller.report().needs.contains(need) || !obstacle.services.is_empty()
}
