//! What is remembered between two plans: Services whose public IPs, and whose parts of a load
//! balancer, are as they ask.

use crate::ask::{DnsLabel, Intent, PublicIpIntent};
use crate::claim::choice::Pick;
use crate::draft::Draft;
use crate::own::tags;
use model::azure::{LoadBalancer, PublicIp, Sku};
use model::{Family, ResourceId, ServiceUid};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Services that have their public IPs to themselves, and each of them as they ask.
///
/// # Guarantees
/// Who is found is what looking at it again would find: what it asks and its public IPs are the
/// same values in memory, and nothing else has a say.
///
/// # Assumptions
/// All of it was found under one policy.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// How many plans were begun.
    plans: u64,
    services: BTreeMap<ServiceUid, Held>,
}

/// What a Service asks, and the public IPs that it has.
#[derive(Debug)]
pub(crate) struct Held {
    intent: Arc<Intent>,
    /// Ids as the Service names them, with what is there.
    pub ips: Vec<(Family, ResourceId, Arc<PublicIp>)>,
    /// The plan that found them as the Service asks, by its number.
    found: u64,
    /// Where it had all its parts then, and no others.
    seat: Option<Seat>,
}

/// The load balancer on which a Service has all its parts.
#[derive(Debug)]
struct Seat {
    on: Arc<LoadBalancer>,
    /// The places of its frontends there, and their addresses, in the order of its public IPs.
    frontends: Vec<(usize, IpAddr, Arc<str>)>,
}

impl Memory {
    /// Begins a plan: forgets Services that are gone.
    pub fn renew(&mut self, draft: &Draft<'_>) {
        self.plans += 1;
        let there = &draft.world.kubernetes.services;
        if self.services.len() > there.len() {
            self.services.retain(|uid, _| there.contains_key(uid));
        }
    }

    /// A Service whose public IPs are as they were, and which others have not edited in this plan.
    pub fn find(
        &mut self,
        draft: &Draft<'_>,
        intent: &Arc<Intent>,
        is_edited: impl Fn(&ResourceId) -> bool,
    ) -> Option<&Held> {
        let held = self.services.get_mut(&intent.uid)?;
        let stands = |(_, id, ip): &(Family, ResourceId, Arc<PublicIp>)| {
            draft.public_ip(id).is_some_and(|now| Arc::ptr_eq(now, ip))
                && !is_edited(id)
                && !has_outlived(draft, intent, ip)
        };
        let same = Arc::ptr_eq(&held.intent, intent) && held.ips.iter().all(stands);
        if same {
            held.found = self.plans;
        }
        same.then_some(&*held)
    }

    /// A Service whose public IPs this plan has found to be as it asks.
    pub fn found(&self, intent: &Arc<Intent>) -> Option<&Held> {
        let held = self.services.get(&intent.uid)?;
        (held.found == self.plans && Arc::ptr_eq(&held.intent, intent)).then_some(held)
    }

    /// The same of a Service that had all its parts on a load balancer.
    pub fn seated(&self, intent: &Arc<Intent>, on: &Arc<LoadBalancer>) -> Option<&Held> {
        let there = |held: &&Held| held.seat.as_ref().is_some_and(|at| Arc::ptr_eq(&at.on, on));
        self.found(intent).filter(there)
    }

    /// Remembers that a Service has all its parts on a load balancer, and no others: its frontends
    /// are at these places.
    pub fn seat(&mut self, uid: &ServiceUid, on: &Arc<LoadBalancer>, places: &[usize]) {
        let Some(held) = self.services.get_mut(uid) else { return };
        let addresses = held.ips.iter().filter_map(|(_, _, ip)| ip.address);
        let frontends = places.iter().zip(addresses);
        let frontends = frontends.map(|(at, address)| (*at, address, address.to_string().into()));
        held.seat = Some(Seat { on: Arc::clone(on), frontends: frontends.collect() });
    }

    /// Remembers a Service whose public IPs were left as they are, where that is said by them and
    /// by what it asks alone.
    pub fn note(&mut self, draft: &Draft<'_>, intent: &Arc<Intent>, picks: &[Pick]) {
        let certain = |pick: &Pick| {
            let (ip, _) = pick.there.as_ref().filter(|(ip, _)| is_certain(draft, intent, ip))?;
            Some((pick.family, pick.id.clone(), Arc::clone(ip)))
        };
        let ips: Option<Vec<_>> = picks.iter().map(certain).collect();
        let all = |ips: &Vec<_>| is_plain(intent) && ips.len() == intent.public_ips.len();
        if let Some(ips) = ips.filter(all) {
            let (intent, found) = (Arc::clone(intent), self.plans);
            self.services.insert(intent.uid.clone(), Held { intent, ips, found, seat: None });
        }
    }
}

impl Held {
    /// The frontends of a seated Service: each with its family, its place, its address and the
    /// text of it.
    pub fn frontends(&self) -> impl Iterator<Item = (Family, usize, IpAddr, &Arc<str>)> {
        let families = self.ips.iter().map(|(family, _, _)| *family);
        let places = self.seat.iter().flat_map(|seat| &seat.frontends);
        families.zip(places).map(|(family, (at, address, text))| (family, *at, *address, text))
    }
}

/// Whether a Service asks for public IPs that are made for it, and for nothing that others could
/// have.
fn is_plain(intent: &Intent) -> bool {
    let options = &intent.public_ip_options;
    let made = |wish: &PublicIpIntent| matches!(wish, PublicIpIntent::Managed { .. });
    options.dns_label == DnsLabel::Untouched
        && options.ip_tags.is_none()
        && intent.pinned.is_empty()
        && intent.public_ips.values().all(made)
}

/// Whether a public IP has a tag that an annotation set and that is wanted no more: the ledger may
/// have been read since the public IP was looked at.
fn has_outlived(draft: &Draft<'_>, intent: &Intent, ip: &PublicIp) -> bool {
    let Some(set) = draft.set_tags(&ip.id) else { return false };
    let wanted = &intent.public_ip_options.tags;
    let mut all = ip.tags.iter().flatten();
    all.any(|(key, _)| tags::is_outlived(key, set, draft.policy, wanted))
}

/// Whether a public IP says by itself that it is this cluster's, and the Service's alone.
fn is_certain(draft: &Draft<'_>, intent: &Intent, ip: &PublicIp) -> bool {
    let near = |user: &ResourceId| user.is_in(&draft.policy.balancer_group);
    ip.sku != Sku::Basic
        && ip.user.as_ref().is_none_or(near)
        && draft.own.is_ours_by_name(ip)
        && tags::names_only(ip, &intent.name)
}
