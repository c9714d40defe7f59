//! Addresses that a Service goes on having: nothing is opened that is not recorded, and where
//! nothing goes wrong none is closed, or left out of a status, on the way to where it is to be.

use super::azure::Write;
use super::form::{destinations, is_in, parts, told, values};
use super::hands::Sleep;
use crate::scene::objects::OTHER_ADDRESS;
use crate::stage::{Sent, Stage};
use crate::tally::count;
use crate::weather::Weather;
use arm::Method;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How the names of rules of our form begin.
pub(super) const OURS: &str = "k8s-azure-lb";

/// What a Service lost for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lost {
    /// The rules that lead to an address.
    Opening,
    /// The address in its status.
    Telling,
}

/// What was given up: what of which Service's address, and at which edit of its owner's.
pub(crate) type GivenUp = BTreeMap<(Lost, String, Part), u64>;

/// Addresses that Services tell by their UID although the public IP has gone.
pub(crate) type Freed = BTreeSet<(String, Part)>;

/// A protocol and a port of an address, as a security rule opens them: Services that share an
/// address differ in them. A status tells an address as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    address: String,
    /// `Tcp 80`; `None` for the address as a whole.
    port: Option<String>,
}

impl Part {
    fn whole(address: &str) -> Self {
        Self { address: address.to_owned(), port: None }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.port {
            None => f.write_str(&self.address),
            Some(port) => write!(f, "{} {port}", self.address),
        }
    }
}

/// Whether a Service has the port of a part. A rule for all ports is of every one of them.
fn has_port(service: &Value, part: &Part) -> bool {
    let number = part.port.as_deref().and_then(|port| port.rsplit(' ').next()?.parse().ok());
    let has = |port: &Value| number.is_none_or(|number: u64| port["port"] == number);
    service["spec"]["ports"].as_array().into_iter().flatten().any(has)
}

/// What rules of our form let anybody reach.
fn open(group: Option<&Value>) -> BTreeSet<Part> {
    let rules = group.map(|group| parts(group, "securityRules")).unwrap_or_default();
    let ours = rules
        .into_iter()
        .filter(|(name, rule)| name.starts_with(OURS) && rule["properties"]["access"] == "Allow");
    let mut all = BTreeSet::new();
    for (_, rule) in ours {
        let protocol = rule["properties"]["protocol"].as_str().unwrap_or("");
        for port in values(rule, "destinationPortRange", "destinationPortRanges") {
            let port = Some(format!("{protocol} {port}"));
            let to = destinations(rule);
            all.extend(to.map(|to| Part { address: to.to_owned(), port: port.clone() }));
        }
    }
    all
}

impl Stage {
    /// S3 and S4 at a write of the security group.
    pub(super) fn check_openings(&mut self, write: &Write<'_>) {
        if !is_in(write.path, "networkSecurityGroups") {
            return;
        }
        let (was, is) = (open(write.before), open(write.after));
        let opened: Vec<&Part> = is.difference(&was).collect();
        self.check_recorded(write.sent, &opened);
        for part in was.difference(&is) {
            for uid in self.holders(part) {
                self.give_up(write.sent, Lost::Opening, &uid, part);
            }
        }
        for part in opened {
            // An address that it has left for good is another's by now.
            let holders = self.holders(part);
            if let Some(name) = self.takes_back(Lost::Opening, &holders, part) {
                let text = format!("{part} of {name} was closed for a while, unasked");
                self.fail("S3", text);
                return;
            }
        }
    }

    /// S4: a destination is in the ledger before it is opened. What a process that is gone by now
    /// had sent was recorded then. On whose account it is open is noted.
    fn check_recorded(&mut self, sent: &Sent, opened: &[&Part]) {
        if opened.is_empty() || self.processes[sent.process].epoch != sent.epoch {
            return;
        }
        count(&mut self.tally.checks, "S4");
        let recorded = self.recorded();
        for part in opened {
            let Some(holders) = recorded.get(part.address.as_str()) else {
                let text = format!("{} was opened, and it is not in the ledger", part.address);
                self.fail("S4", text);
                return;
            };
            for uid in holders.iter().filter(|uid| self.truth.services.contains_key(*uid)) {
                let opened = self.ledger.opened.entry((*uid).to_owned()).or_default();
                opened.insert(part.address.clone());
            }
        }
    }

    /// Who has which address open, by the ledger.
    fn recorded(&self) -> BTreeMap<String, Vec<String>> {
        let ledgers = self.kubernetes.list("configmaps", None);
        let lines = ledgers.iter().filter_map(|map| map["data"]["destinations"].as_str());
        let mut recorded: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines.flat_map(str::lines) {
            let mut words = line.split_whitespace().map(str::to_owned);
            let Some(holder) = words.next() else { continue };
            words.for_each(|address| recorded.entry(address).or_default().push(holder.clone()));
        }
        recorded
    }

    /// L2: an address that the ledger has, and that is open nowhere.
    pub(crate) fn only_recorded(&self) -> Option<String> {
        let group = self.azure.shown_by_id(&self.scene.security_group());
        let open = open(group.as_deref());
        let is_open = |address: &str| open.iter().any(|part| part.address == address);
        self.recorded().into_keys().find(|address| !is_open(address))
    }

    /// L4: an address that a Service goes on having stays in its status. An address
    /// whose frontend is being made again, after two edits by the owner, may leave it meanwhile.
    pub(super) fn check_untold(&mut self, sent: &Sent, before: &Value, after: &Value) {
        let (was, is): (BTreeSet<&str>, BTreeSet<&str>) =
            (told(before).collect(), told(after).collect());
        let uid = after["metadata"]["uid"].as_str().unwrap_or("").to_owned();
        for address in was.difference(&is) {
            let part = Part::whole(address);
            let comes = self.part_under_way(sent, address, &uid, Sleep::None).is_some();
            if !self.ledger.freed.remove(&(uid.clone(), part.clone())) && !comes {
                self.give_up(sent, Lost::Telling, &uid, &part);
            }
        }
        for address in is.difference(&was) {
            let uids = std::slice::from_ref(&uid);
            if let Some(name) = self.takes_back(Lost::Telling, uids, &Part::whole(address)) {
                let text = format!("the status of {name} was without {address} for a while");
                self.fail("L4", text);
                return;
            }
        }
    }

    /// A public IP goes: whoever gets its address later has another one, also where Azure gives it
    /// to the same Service: a prefix gives out what it has free again. Who still tells it has
    /// really lost it: the write that takes it out of the status may take effect after this one.
    pub(super) fn note_freed(&mut self, write: &Write<'_>) {
        let kind = is_in(write.path, "publicIPAddresses");
        let goes = write.method == Method::Delete && kind;
        let address = write.before.filter(|_| goes).map(|ip| &ip["properties"]["ipAddress"]);
        if let Some(address) = address.and_then(Value::as_str) {
            self.ledger.given_up.retain(|(_, _, part), _| part.address != address);
            let whole = Part::whole(address);
            let tellers = self.holders(&whole).into_iter().map(|uid| (uid, whole.clone()));
            self.ledger.freed.extend(tellers);
        }
    }

    /// What is open for a Service whose finalizer goes, and for no other: of an address that others
    /// were recorded for, too, its own ports.
    pub(super) fn open_for(&self, service: &Value) -> Option<String> {
        let uid = service["metadata"]["uid"].as_str().unwrap_or("");
        let recorded = self.ledger.opened.get(uid)?;
        let services = self.kubernetes.list("services", None);
        let is_anothers = |part: &Part| {
            let mut others = services.iter().filter(|other| other["metadata"]["uid"] != uid);
            others.any(|other| {
                let uid = other["metadata"]["uid"].as_str().unwrap_or("");
                let recorded = self.ledger.opened.get(uid);
                recorded.is_some_and(|all| all.contains(&part.address)) && has_port(other, part)
            })
        };
        let group = self.azure.shown_by_id(&self.scene.security_group());
        let open = open(group.as_deref());
        let own = open.iter().filter(|part| recorded.contains(&part.address));
        let mut own = own.filter(|part| has_port(service, part) && part.address != OTHER_ADDRESS);
        own.find(|part| !is_anothers(part)).map(|part| format!("an opening of {part}"))
    }

    /// Services whose status tells an address, and that have the port.
    fn holders(&self, part: &Part) -> Vec<String> {
        let services = self.kubernetes.list("services", None);
        let on = services.iter().filter(|service| {
            told(service).any(|ip| ip == part.address) && has_port(service, part)
        });
        on.filter_map(|service| service["metadata"]["uid"].as_str().map(str::to_owned)).collect()
    }

    /// Notes what a Service loses that wants a load balancer, for what its owner said last. Where a
    /// call fails, or people have changed what it has by hand, the Service may really have lost it:
    /// then the rule is closed and the status without the address for as long as Azure has it so. A
    /// load balancer that is made again in another SKU has no address meanwhile.
    fn give_up(&mut self, sent: &Sent, what: Lost, uid: &str, part: &Part) {
        let known = self.truth.services.get(uid);
        let known = known.filter(|s| s.wants && s.edited_at <= sent.services);
        let fair = matches!(self.weather, Weather::Fair)
            && !self.was_service_touched(uid)
            && !self.was_taken_away(&part.address, Sleep::Long);
        if let Some(service) = known.filter(|_| fair && !self.is_rebuilding()) {
            let key = (what, uid.to_owned(), part.clone());
            self.ledger.given_up.insert(key, service.edited_at);
        }
    }

    /// The Service of these that gets back what it lost, although its owner has asked for nothing
    /// else.
    fn takes_back(&mut self, what: Lost, uids: &[String], part: &Part) -> Option<String> {
        let mut found = None;
        let (truth, fair) = (&self.truth, matches!(self.weather, Weather::Fair));
        self.ledger.given_up.retain(|(of, whose, at), edited_at| {
            let same = *of == what && at == part && uids.contains(whose);
            let service = truth.services.get(whose).filter(|_| same && fair);
            let unasked = service.filter(|s| s.wants && s.edited_at == *edited_at);
            found = found.take().or(unasked.map(|service| service.name.clone()));
            !same
        });
        found
    }
}
