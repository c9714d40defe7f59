//! The idle timeout of a Service's load-balancing rules.

use super::annotation::full;
use super::findings::INVALID_IDLE_TIMEOUT;
use super::reader::Reader;
use std::ops::RangeInclusive;

/// Minutes without an annotation: Azure's own default.
const DEFAULT: u16 = 4;

/// The finding's text where load balancers are not Standard.
pub(super) const SHORT_IDLE_TIMEOUT: &str = "must be a whole number of minutes from 4 to 30";

/// The idle timeout in minutes. One outside the bounds is a finding with this message.
pub(super) fn idle_timeout(r: &mut Reader<'_>, bounds: RangeInclusive<u16>, message: &str) -> u16 {
    let key = "azure-load-balancer-tcp-idle-timeout";
    let Some(text) = r.raw(key) else { return DEFAULT };
    text.parse().ok().filter(|minutes| bounds.contains(minutes)).unwrap_or_else(|| {
        r.find_with(&INVALID_IDLE_TIMEOUT, &full(key), text, message);
        DEFAULT
    })
}
