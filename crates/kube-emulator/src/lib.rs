//! The Kubernetes API as a pure store ([`Store`]) and a thin HTTP server ([`server`]).
//!
//! The store answers requests given as values; time comes as an argument, randomness from a seed,
//! watches are asked for what is new. What a cluster's controllers would do at once (fill
//! EndpointSlices from pods, empty a deleted namespace, collect owned objects) happens inside the
//! request that caused it. There is no scheduler and no kubelet: clients write the status of pods
//! and nodes themselves.

mod calls;
mod discovery;
mod events;
mod faults;
mod json;
mod kinds;
mod names;
mod openapi;
mod patch;
mod pool;
mod protobuf;
mod request;
mod route;
mod selectors;
pub mod server;
mod service;
mod slices;
mod status;
mod store;
mod tables;
mod time;
mod uid;
mod watch;

pub use calls::LoggedCall;
pub use faults::{Failure, Fault};
pub use kinds::{KINDS, Kind, Scope, StatusPart, by_object, by_plural};
pub use patch::Patch;
pub use request::{Body, Method, Request, Response};
pub use route::Part;
pub use selectors::{FieldSelector, LabelSelector};
pub use server::{Shared, kubeconfig, serve};
pub use status::ApiError;
pub use store::{ObjectRef, Ownership, Store, StoreOptions};
pub use tables::TableHead;
pub use watch::{Bookmarks, Continuation, EventType, WatchEvent, WatchSpec, WatchStart};
