//! The bugs and races that the Go cloud provider's tests guard against, one test a line; each is
//! named after what must be impossible.

mod support;

#[path = "races/admission.rs"]
mod admission;
#[path = "races/egress.rs"]
mod egress;
#[path = "races/endpoints.rs"]
mod endpoints;
#[path = "races/life.rs"]
mod life;
#[path = "races/start.rs"]
mod start;
#[path = "races/tables.rs"]
mod tables;
#[path = "races/wire.rs"]
mod wire;
