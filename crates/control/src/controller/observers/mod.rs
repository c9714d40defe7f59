//! What the controller does and sees is told, counted and timed. Nothing that decides reads it.

mod drift_log;
mod history;
mod kubernetes_events;
mod latency;
mod notice;
mod pods;
