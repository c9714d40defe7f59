//! Notices, counts and times of what the controller does and sees. No decision reads them.

mod drift_log;
mod history;
mod kubernetes_events;
mod latency;
mod notice;
mod pods;
