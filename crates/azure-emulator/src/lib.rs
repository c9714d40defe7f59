//! Azure Resource Manager as a pure state machine, and a thin HTTP server around it.
//!
//! [`Azure::handle`] takes one request and the time and gives one answer; nothing in it waits,
//! looks at a clock or opens a socket. [`serve`] puts it on a port for programs that speak HTTP,
//! among them Azure's own SDKs and command line.
//!
//! It keeps resources as untyped JSON, so that a property that no rule of it looks at comes back as
//! it was sent, and enforces what Azure enforces: the published contract of the request's
//! api-version, references, SKUs, limits, ETags, operations that take their time, throttling. It
//! can be told to misbehave in every way Azure has been seen to: see [`Fault`] and [`Options`].
//!
//! Error codes are Azure's own where a public thread or document shows them. Where none does, the
//! code says what is wrong (for example `BackendAddressPoolCannotMixNicsAndAddresses`); clients
//! should not decide by those.

mod admin;
mod azure;
mod balancer_rules;
mod calls;
mod compute;
mod contract;
mod data_path;
mod elements;
mod entry;
mod envelope;
mod faults;
mod gateway;
mod host;
mod ids;
mod json;
mod links;
mod load_balancer;
mod load_balancer_checks;
mod message;
mod metrics;
mod network;
mod operations;
mod options;
mod path;
mod permissions;
mod public_ip;
mod quirks;
mod rules;
mod sample;
mod security_group;
mod seed;
mod server;
mod sign_in;
mod store;
mod subscription;
mod throttle;
mod traffic;
mod uses;
mod verbs;
mod view;

pub use azure::Azure;
pub use calls::Call;
pub use compute::computer_name;
pub use faults::{Fault, FaultKind};
pub use message::{Answer, Fate, Request, Shown};
pub use options::{Empties, GatewayReply, Options, Overlap, Switch};
pub use sample::{SampleGateway, SampleMachine, SampleOptions, sample_cloud_config, sample_estate};
pub use server::{Shared, serve, serve_with};
pub use traffic::{FloatingIp, Traffic};
