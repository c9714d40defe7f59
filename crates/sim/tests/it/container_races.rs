//! The bugs and races that the Go cloud provider's tests guard against, one test a line; each is
//! named after what must be impossible.

mod admission;
mod egress;
mod endpoints;
mod life;
mod start;
mod tables;
mod wire;
