//! What is to happen on a stage, and what the sender of a write knew.

use crate::election::Ordeal;
use crate::process::plural;
use control::KubernetesAnswer;
use model::world::Kind;

/// What a write's sender knew when it sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Which process.
    pub process: usize,
    /// Which life of it.
    pub epoch: u64,
    /// Which call: all are numbered in the order of their sending.
    pub call: u64,
    /// When.
    pub at_ms: u64,
    /// When it leaves the process, which may stand still before.
    pub leaves_ms: u64,
    /// Up to which revision it knew nodes.
    pub nodes: u64,
    /// Up to which revision it knew Services.
    pub services: u64,
    /// Up to which revision it knew EndpointSlices.
    pub slices: u64,
    /// Up to which revision it knew Pods with an egress label; 0 where it knows none.
    pub pods: u64,
    /// Under which term of the lease.
    pub term: u64,
    /// Whether the lease was its own.
    pub rightful: Rightful,
}

#[cfg(test)]
impl Sent {
    /// What the only process sends now that knows all there is.
    pub(crate) fn now(stage: &crate::stage::Stage) -> Self {
        let known = stage.kubernetes.revision();
        Self {
            process: 0,
            epoch: 0,
            call: 0,
            at_ms: stage.now_ms,
            leaves_ms: stage.now_ms,
            nodes: known,
            services: known,
            slices: known,
            pods: known,
            term: 0,
            rightful: Rightful::Yes,
        }
    }
}

/// Whether a process had the right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rightful {
    /// It had.
    Yes,
    /// It had not.
    No,
}

/// Something that is to happen.
#[derive(Debug)]
pub enum Happening {
    /// A request reaches Azure.
    AzureArrives(Sent, control::CallId, Box<arm::Request>, u64),
    /// Azure's answer reaches the process.
    AzureAnswers(usize, u64, control::CallId, Box<arm::Answer>, u64),
    /// A call reaches the API server.
    ApiArrives(Sent, control::CallId, Box<control::KubernetesCall>, u64),
    /// Its answer reaches the process.
    ApiAnswers(usize, u64, control::CallId, Box<KubernetesAnswer>, u64),
    /// A watch brings what is new.
    Watch(usize, u64, Kind),
    /// A process takes a step.
    Step(usize, u64),
    /// A process wakes by itself.
    Wake(usize, u64, u64),
    /// A process begins to renew the lease, or to ask for it.
    Renew(usize, u64),
    /// A call on the Lease reaches the API server.
    LeaseArrives(usize, u64, Box<lease::Call>, Ordeal, u64),
    /// What came of it reaches the process.
    LeaseAnswers(usize, u64, Box<lease::Answer>),
}

impl Happening {
    /// Whether it goes on for ever: waiting, and holding the lease.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(
            self,
            Self::Wake(..) | Self::Renew(..) | Self::LeaseArrives(..) | Self::LeaseAnswers(..)
        )
    }
}

impl std::fmt::Display for Happening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AzureArrives(_, _, request, _) => {
                let path = crate::path::bare_path(request);
                let name = path.rsplit('/').next().unwrap_or("");
                write!(f, "Azure gets {} {name}", request.method.name())
            }
            Self::AzureAnswers(number, ..) => write!(f, "process {number} hears from Azure"),
            Self::ApiArrives(_, _, call, _) => write!(f, "the API server gets {}", call.path),
            Self::ApiAnswers(number, ..) => {
                write!(f, "process {number} hears from the API server")
            }
            Self::Watch(number, _, kind) => write!(f, "process {number} watches {}", plural(*kind)),
            Self::Step(number, _) => write!(f, "process {number} steps"),
            Self::Wake(number, ..) => write!(f, "process {number} wakes"),
            Self::Renew(number, _) => write!(f, "process {number} renews the lease"),
            Self::LeaseArrives(_, _, call, ..) => write!(f, "the API server gets {}", call.path),
            Self::LeaseAnswers(number, ..) => write!(f, "process {number} hears of the lease"),
        }
    }
}
