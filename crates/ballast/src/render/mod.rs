//! How results look to people: pure functions from values to text.

pub mod admission;
pub mod adopt;
pub mod azure_check;
pub mod explain;
pub mod history;
pub mod known;
pub mod lint;
pub mod notice;
pub mod orphans;
pub mod plan;
pub mod status;
pub mod table;
pub mod tree;
pub mod watch;
