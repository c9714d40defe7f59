//! Azure's wire, without a socket: requests and answers ([`exchange`]), paths ([`path`]), resource
//! bodies ([`body`]), long-running operations ([`operation`]), lists in pages ([`page`]), error
//! codes ([`error`]) and what health probes found ([`probe_status`]).
//!
//! # Guarantees
//! No JSON makes anything here panic. What a body holds beyond what planning looks into goes back
//! with the next write as it came.

pub mod body;
pub mod difference;
pub mod error;
pub mod exchange;
pub mod operation;
pub mod page;
pub mod path;
pub mod permission;
pub mod probe_status;

pub use error::{ArmError, ErrorKind};
pub use exchange::{
    Answer, Body, Condition, Item, Method, Page, Reply, Request, Target, TransportFault,
};
pub use operation::{Operation, Step};
pub use page::{JsonItem, PageStep, Pages};
