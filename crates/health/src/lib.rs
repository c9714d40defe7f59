//! The health of Services on one node, apart from the service proxy, and the verdict over all.
//!
//! [`Agent`] is one node's state machine: facts of its node, of EndpointSlices, of its proxy and of
//! the verdict go in; what a probe is answered, and whether the proxy is reported as ill, come out.
//! [`Majority`] is the controller's: reports go in, and it decides whether nodes with an
//! ill proxy stay in rotation, because so many are ill at once that nodes are not the cause.
//! [`wire`] finds the PROXY protocol's header before a probe; [`object`] has the Kubernetes objects
//! by which agents and controller tell each other.
//!
//! # Guarantees
//! No clock and no socket: time is an argument. What was known stays in force until something newer
//! is known: a cut from the API server changes no answer.

mod agent;
mod majority;
pub mod object;
pub mod wire;

pub use agent::{Agent, Answer, Fact, Leaving, NodeFact, Part, Proxy};
pub use majority::{Decision, Majority, ReportFact, ReportPart};

/// Whether each node's proxy decides about its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It does: a node whose proxy is ill leaves rotation.
    #[default]
    Each,
    /// It does not: so many are ill at once that their nodes stay in rotation.
    Together,
}
