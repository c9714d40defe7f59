//! Plans are carried out on a stage that refuses what Azure refuses.

mod cases;
mod chaos;
mod custody;
mod egress_tenants;
mod gates;
mod stage;
mod targets;
mod tenants;
mod waiting;
