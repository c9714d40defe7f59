//! Writes in Kubernetes are sent and answered, and times go by there.

mod drains;
mod gates;
mod holders;
mod ledger;
mod moves;
mod objects;
mod tags;
