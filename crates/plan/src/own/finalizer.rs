//! The finalizers that say that a Service is ours, and that something of it may stand.

use model::Policy;
use model::kubernetes::{GATEWAY_FINALIZER, SERVICE_FINALIZER, Service};
use model::policy::Layout;

/// The finalizers a Service of ours carries.
pub(crate) fn finalizers(policy: &Policy) -> &'static [&'static str] {
    match policy.layout {
        Layout::PerService => &[SERVICE_FINALIZER, GATEWAY_FINALIZER],
        Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => &[SERVICE_FINALIZER],
    }
}

/// Whether a Service carries every finalizer that must be there before the first Azure write.
pub(crate) fn is_claimed(policy: &Policy, service: &Service) -> bool {
    finalizers(policy).iter().all(|f| service.has_finalizer(f))
}
