//! A Service that Azure refuses, for as long as it does.

use crate::carry::bare_path;
use crate::fault::Fault;
use crate::refusal::refusal;
use crate::scene::{self, Layout};
use crate::stage::Stage;
use arm::{Method, Request};
use azure_emulator::FaultKind;

/// What of a Service is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Balancer,
    /// Its row in the Service Gateway, with all that is written in the same call.
    Registration,
}

impl Stage {
    /// How Azure refuses a Service's first part, where that Service is the poisoned one.
    pub(crate) fn poisoned(&self, request: &Request) -> Option<FaultKind> {
        let name = self.poison.as_ref().filter(|_| request.method != Method::Delete)?;
        let path = bare_path(request);
        let refused = match request.method {
            Method::Put if path.contains("/loadBalancers/") => Refused::Balancer,
            Method::Post if path.ends_with("/updateServices") => Refused::Registration,
            _ => return None,
        };
        if refused != self.refused_part() {
            return None;
        }
        let services = self.truth.services.iter();
        let (uid, service) =
            services.filter(|(_, s)| s.name == *name).find(|(_, s)| s.gone_at.is_none())?;
        let body = request.body.as_ref()?.text().to_lowercase();
        let has = |text: &str| text.contains(&service.base) || text.contains(uid.as_str());
        let standing = match refused {
            Refused::Balancer => self.azure.shown_by_id(path).map(|r| r.to_string()),
            Refused::Registration => {
                self.azure.gateway(&scene::gateway()).map(|t| t["services"].to_string())
            }
        };
        let there = standing.is_some_and(|standing| has(&standing.to_lowercase()));
        let refused = (has(&body) || has(&path.to_lowercase())) && !there;
        refused.then(|| refusal(400, "InvalidRequestFormat", "on order", None))
    }

    /// Container load balancers are refused themselves, or in the table that they share.
    fn refused_part(&self) -> Refused {
        let shared = self.scene.layout == Layout::Containers && self.scene.uids % 2 == 1;
        if shared { Refused::Registration } else { Refused::Balancer }
    }

    /// Whether a Service that asks for a load balancer is refused, and has been.
    pub(crate) fn is_refused(&self) -> bool {
        let Some(name) = &self.poison else { return false };
        let met = self.tally.faults.contains_key(Fault::Poison.name());
        met && self.truth.services.values().any(|s| s.name == *name && s.wants)
    }
}
