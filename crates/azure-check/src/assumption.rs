//! One assumption: what is assumed, where it stands, how it is tried, what came of it.

use crate::exchange::Exchange;
use crate::lab::Lab;
use crate::probes::refusals::Refusal;
use crate::registry::ASSUMPTIONS;
use serde::Serialize;

/// One assumption of Azure.
#[derive(Clone, Copy, Debug)]
pub struct Assumption {
    /// Its name, which stands in `docs/dev/azure-facts.md` in brackets.
    pub id: &'static str,
    /// What is assumed.
    pub assumed: &'static str,
    /// Where it stands.
    pub section: Section,
    /// How it is tried.
    pub way: Way,
}

/// An assumption by its id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Assumption> {
    ASSUMPTIONS.iter().find(|assumption| assumption.id == id)
}

/// A section of `docs/dev/azure-facts.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Load balancers.
    LoadBalancers,
    /// Calls.
    Calls,
    /// API versions.
    ApiVersions,
    /// Refusals.
    Refusals,
    /// Assumptions.
    Assumptions,
}

impl Section {
    /// The file and the heading.
    #[must_use]
    pub fn link(self) -> &'static str {
        match self {
            Self::LoadBalancers => "docs/dev/azure-facts.md#load-balancers",
            Self::Calls => "docs/dev/azure-facts.md#calls",
            Self::ApiVersions => "docs/dev/azure-facts.md#api-versions",
            Self::Refusals => "docs/dev/azure-facts.md#refusals",
            Self::Assumptions => "docs/dev/azure-facts.md#assumptions",
        }
    }
}

/// How an assumption is tried.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// By calls of its own.
    Probe(fn(&mut Lab<'_>) -> Tried),
    /// By one PUT that Azure is expected to refuse.
    Refusal(&'static Refusal),
    /// By what the calls of all others showed.
    Seen(fn(&[Exchange]) -> Observed),
    /// Not at all, and why.
    Untried(&'static str),
}

/// What came of trying an assumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// Azure behaves as assumed; with what was measured, where something was.
    Confirmed(Option<String>),
    /// Azure behaves otherwise: how.
    Differs(String),
    /// It could not be tried: why.
    NotTried(String),
}

impl Verdict {
    /// As assumed, with nothing to add.
    pub(crate) const AS_ASSUMED: Self = Self::Confirmed(None);

    /// In words.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Confirmed(_) => "confirmed",
            Self::Differs(_) => "differs",
            Self::NotTried(_) => "not tried",
        }
    }

    /// What there is to add.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Confirmed(why) => why.as_deref(),
            Self::Differs(why) | Self::NotTried(why) => Some(why),
        }
    }
}

/// Why an assumption could not be tried: something that it needs was not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked(pub String);

/// What a probe returns.
pub type Tried = Result<Verdict, Blocked>;

/// What the calls of others showed: the verdict and the places of the calls that decide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The verdict.
    pub verdict: Verdict,
    /// Indices of exchanges.
    pub evidence: Vec<usize>,
}
