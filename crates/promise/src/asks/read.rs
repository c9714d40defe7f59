//! How annotations and the spec are read.

use super::{Asks, Invalid};
use crate::site::Site;
use serde_json::Value;

/// What a Service asks for.
pub(crate) fn read(_service: &Value, _site: &Site) -> Result<Asks, Invalid> {
    Err(Invalid("nothing is read yet".to_owned()))
}
