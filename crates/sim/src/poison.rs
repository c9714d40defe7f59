//! A Service that Azure refuses, or a list that the controller is not let read or cannot, for as
//! long as that is so.

use crate::entries::entries;
use crate::fault::Fault;
use crate::path::bare_path;
use crate::random::Random;
use crate::refusal::refusal;
use crate::scene::{self, Layout};
use crate::stage::Stage;
use crate::tally::count;
use arm::{Method, Request};
use azure_emulator::{Answer, FaultKind, Shown};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What Azure says of a right that is missing.
pub(crate) const UNREADABLE: &str = "AuthorizationFailed";

/// What of a Service is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Balancer,
    /// Its own public IP. One that has none is not refused.
    Address,
    /// Its row in the Service Gateway, with all that is written in the same call.
    Registration,
    /// Addresses that are new to its row, with all that is written in the same call.
    Endpoints,
    /// No Service: lists whose path ends so, in small letters.
    List(&'static str),
    /// Nothing: the items of lists whose path ends so have a form that is not known.
    Items(&'static str),
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
            Refused::Registration | Refused::Endpoints | Refused::List(_) | Refused::Items(_) => {
                &["InvalidRequestFormat", "InvalidParameter"]
            }
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

    /// The Service Gateway takes no address more for it.
    #[must_use]
    pub fn of_endpoints(service: String) -> Self {
        let (part, method, code) = (Refused::Endpoints, Method::Post, "InvalidParameter");
        Self { service, part, method, status: 400, code, retry_after_s: None, met: false, times: 0 }
    }

    /// A management lock keeps its public IP from being deleted.
    #[must_use]
    pub fn kept(service: String) -> Self {
        let (part, method, code) = (Refused::Address, Method::Delete, "ScopeLocked");
        Self { service, part, method, status: 409, code, retry_after_s: None, met: false, times: 0 }
    }

    /// The controller's identity has no right to read lists whose path ends so, in small letters.
    #[must_use]
    pub fn of_list(list: &'static str) -> Self {
        let (part, method, code) = (Refused::List(list), Method::Get, UNREADABLE);
        let service = String::new();
        Self { service, part, method, status: 403, code, retry_after_s: None, met: false, times: 0 }
    }

    /// Items of lists whose path ends so, in small letters, have a form that no contract has.
    #[must_use]
    pub fn of_items(list: &'static str) -> Self {
        Self { part: Refused::Items(list), ..Self::of_list(list) }
    }

    fn refusal(&self) -> FaultKind {
        refusal(self.status, self.code, "on order", self.retry_after_s)
    }
}

impl Stage {
    /// How Azure refuses a call that it is to refuse.
    pub(crate) fn refused_on_order(&mut self, request: &Request) -> Option<FaultKind> {
        if let Some(kind) = self.used_up(request) {
            return Some(kind);
        }
        let kind = self.poisoned(request)?;
        if let Some(poison) = &mut self.poison {
            poison.met = true;
            poison.times += 1;
        }
        count(&mut self.tally.faults, Fault::Poison.name());
        Some(kind)
    }

    /// How Azure refuses a Service's first part, where that Service is the poisoned one.
    fn poisoned(&self, request: &Request) -> Option<FaultKind> {
        let deletes = request.method == Method::Delete;
        let poison = self.poison.as_ref();
        let poison = poison.filter(|poison| deletes == (poison.method == Method::Delete))?;
        let path = bare_path(request);
        if let Refused::List(list) = poison.part {
            let lists = request.method == Method::Get && path.to_lowercase().ends_with(list);
            return lists.then(|| poison.refusal());
        }
        let part = match request.method {
            Method::Put if path.contains("/loadBalancers/") => Refused::Balancer,
            Method::Put | Method::Delete if path.contains("/publicIPAddresses/") => {
                Refused::Address
            }
            Method::Post if path.ends_with("/updateServices") => Refused::Registration,
            Method::Post if path.ends_with("/updateAddressLocations") => Refused::Endpoints,
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
        if part == Refused::Endpoints {
            let tables = self.azure.gateway(&scene::gateway()).unwrap_or_default();
            return adds(&request.body.as_ref()?.tree(), &tables, uid).then(|| poison.refusal());
        }
        let body = request.body.as_ref()?.text().to_lowercase();
        let standing = match part {
            Refused::Balancer | Refused::Address => {
                self.azure.shown_by_id(path).map(|r| r.to_string())
            }
            Refused::Registration => {
                self.azure.gateway(&scene::gateway()).map(|t| t["services"].to_string())
            }
            Refused::Endpoints | Refused::List(_) | Refused::Items(_) => None,
        };
        let there = standing.is_some_and(|standing| has(&standing.to_lowercase()));
        let asked = if part == Refused::Address { false } else { has(&body) };
        let refused = (asked || has(&path.to_lowercase())) && !there;
        refused.then(|| poison.refusal())
    }

    /// What Azure answers: where that is on order, the items of a list have their ids, and besides
    /// nothing that can be read.
    pub(crate) fn garbled(&mut self, request: &Request, mut answer: Answer) -> Answer {
        let Some(poison) = &mut self.poison else { return answer };
        let Refused::Items(list) = poison.part else { return answer };
        let path = bare_path(request).to_lowercase();
        if request.method != Method::Get || !path.ends_with(list) {
            return answer;
        }
        let garble = |item: &mut Value| item["properties"] = Value::String("later".to_owned());
        let listed = answer.body.as_mut().and_then(|body| body.get_mut("value")?.as_array_mut());
        for item in listed.into_iter().flatten() {
            poison.met = true;
            garble(item);
        }
        if let Shown::Page { items, .. } = &mut answer.shown {
            for item in items {
                poison.met = true;
                garble(Arc::make_mut(item));
            }
        }
        answer
    }

    /// Whether a Service that asks for a load balancer is refused, and has been.
    pub(crate) fn is_refused(&self) -> bool {
        let Some(poison) = &self.poison else { return false };
        poison.met && self.truth.services.values().any(|s| s.name == poison.service && s.wants)
    }
}

/// Whether an update of the table of addresses gives a gateway service one that it does not have.
fn adds(update: &Value, tables: &Value, name: &str) -> bool {
    let name = name.to_lowercase();
    let standing = entries(tables);
    let had: BTreeSet<&str> = standing
        .iter()
        .filter(|(_, _, of)| *of == name)
        .map(|(_, address, _)| address.as_str())
        .collect();
    let locations = update["addressLocations"].as_array().into_iter().flatten();
    let mut rows = locations.flat_map(|at| at["addresses"].as_array().into_iter().flatten());
    rows.any(|row| {
        let mut names = row["services"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let address = row["address"].as_str().unwrap_or("");
        names.any(|of| of.eq_ignore_ascii_case(&name)) && !had.contains(address)
    })
}
