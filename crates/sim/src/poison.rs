//! A Service that Azure refuses, for as long as it does.

use crate::carry::bare_path;
use crate::random::Random;
use crate::refusal::refusal;
use crate::scene::{self, Layout};
use crate::stage::Stage;
use arm::{Method, Request};
use azure_emulator::FaultKind;

/// What of a Service is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Balancer,
    /// Its own public IP. One that has none is not refused.
    Address,
    /// Its row in the Service Gateway, with all that is written in the same call.
    Registration,
}

/// A Service that Azure refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poison {
    /// `namespace/name`.
    pub service: String,
    part: Refused,
    /// The call that is refused: to make it, or to delete it.
    method: Method,
    status: u16,
    code: &'static str,
    retry_after_s: Option<u64>,
    /// Whether something of it has been refused.
    pub met: bool,
    /// How often.
    pub times: u64,
}

impl Poison {
    /// Draws what of a Service is refused, and how. Container load balancers are refused
    /// themselves, or in the table that they share.
    #[must_use]
    pub fn draw(service: String, layout: Layout, random: &mut Random) -> Self {
        let shared = layout == Layout::Containers && random.permille(500);
        let part = match (shared, random.permille(300)) {
            (true, _) => Refused::Registration,
            (false, true) => Refused::Address,
            (false, false) => Refused::Balancer,
        };
        let codes: &[&'static str] = match part {
            Refused::Registration => &["InvalidRequestFormat", "InvalidParameter"],
            Refused::Address => &["PublicIPCountLimitReached", "InvalidRequestFormat"],
            Refused::Balancer => &[
                "InvalidRequestFormat",
                "PublicIPAndLBSkuDoNotMatch",
                "PublicIPReferencedByMultipleIPConfigs",
                "AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration",
            ],
        };
        let code: &&'static str = random.pick(codes);
        let times = 0;
        let (method, status, retry_after_s) = (Method::Put, 400, None);
        Self { service, part, method, status, code, retry_after_s, met: false, times }
    }

    /// Another operation has the lock on its public IP, for so many seconds.
    #[must_use]
    pub fn locked(service: String, seconds: u64) -> Self {
        let (part, method, code) =
            (Refused::Address, Method::Put, "RetryableErrorDueToAnotherOperation");
        let retry_after_s = Some(seconds);
        Self { service, part, method, status: 429, code, retry_after_s, met: false, times: 0 }
    }

    /// A management lock keeps its public IP from being deleted.
    #[must_use]
    pub fn kept(service: String) -> Self {
        let (part, method, code) = (Refused::Address, Method::Delete, "ScopeLocked");
        Self { service, part, method, status: 409, code, retry_after_s: None, met: false, times: 0 }
    }

    fn refusal(&self) -> FaultKind {
        refusal(self.status, self.code, "on order", self.retry_after_s)
    }
}

impl Stage {
    /// How Azure refuses a Service's first part, where that Service is the poisoned one.
    pub(crate) fn poisoned(&self, request: &Request) -> Option<FaultKind> {
        let deletes = request.method == Method::Delete;
        let poison = self.poison.as_ref();
        let poison = poison.filter(|poison| deletes == (poison.method == Method::Delete))?;
        let path = bare_path(request);
        let part = match request.method {
            Method::Put if path.contains("/loadBalancers/") => Refused::Balancer,
            Method::Put | Method::Delete if path.contains("/publicIPAddresses/") => {
                Refused::Address
            }
            Method::Post if path.ends_with("/updateServices") => Refused::Registration,
            _ => return None,
        };
        if part != poison.part {
            return None;
        }
        let services = self.truth.services.iter();
        let mut services = services.filter(|(_, s)| s.name == poison.service);
        let (uid, service) = services.find(|(_, s)| s.gone_at.is_none())?;
        let has = |text: &str| text.contains(&service.base) || text.contains(uid.as_str());
        if deletes {
            return has(&path.to_lowercase()).then(|| poison.refusal());
        }
        let body = request.body.as_ref()?.text().to_lowercase();
        let standing = match part {
            Refused::Balancer | Refused::Address => {
                self.azure.shown_by_id(path).map(|r| r.to_string())
            }
            Refused::Registration => {
                self.azure.gateway(&scene::gateway()).map(|t| t["services"].to_string())
            }
        };
        let there = standing.is_some_and(|standing| has(&standing.to_lowercase()));
        let asked = if part == Refused::Address { false } else { has(&body) };
        let refused = (asked || has(&path.to_lowercase())) && !there;
        refused.then(|| poison.refusal())
    }

    /// Whether a Service that asks for a load balancer is refused, and has been.
    pub(crate) fn is_refused(&self) -> bool {
        let Some(poison) = &self.poison else { return false };
        poison.met && self.truth.services.values().any(|s| s.name == poison.service && s.wants)
    }
}
