//! What happens to the controller.

use crate::effect::CallId;
use arm::Answer;
use model::Pause;
use observe::KubernetesFact;
use serde_json::Value;

/// Something that happened. Events change facts and set flags; what is done about them is decided
/// once all that have piled up are taken in.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A watch brought something.
    Kubernetes(KubernetesFact),
    /// An Azure call ended.
    Azure {
        /// Which.
        call: CallId,
        /// How.
        answer: Answer,
    },
    /// A Kubernetes call ended.
    KubernetesWritten {
        /// Which.
        call: CallId,
        /// How.
        answer: KubernetesAnswer,
    },
    /// The right to write was gained or lost.
    Leadership(Leadership),
    /// What an operator has paused, as the Lease says; `None`: nothing.
    Pause(Option<Pause>),
    /// Time passed; nothing else is known.
    Tick,
}

/// Whether this process may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// It may.
    Held,
    /// It may not.
    Lost,
}

/// What became of a Kubernetes call.
#[derive(Clone, Debug, PartialEq)]
pub enum KubernetesAnswer {
    /// The API server answered.
    Reply {
        /// HTTP status.
        status: u16,
        /// `Retry-After` in milliseconds.
        retry_after_ms: Option<u64>,
        /// JSON body.
        body: Option<Value>,
    },
    /// There was no answer; the call may have been carried out.
    Fault(String),
}
