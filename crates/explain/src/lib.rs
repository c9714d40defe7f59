//! What a plan does and why, for whoever looks before it is done.
//!
//! Nothing here decides: all of it asks `plan` again, with other facts or other wishes, and
//! compares the answers.

pub mod adoption;
pub mod causes;
pub mod forecast;
pub mod orphans;

mod reach;
