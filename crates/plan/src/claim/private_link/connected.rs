//! Private Link Services with private endpoints connected. Who deletes one cuts off whoever is
//! behind those endpoints, often in other companies, and a new one has another alias: each has to
//! connect anew. So it stays, and its Service with it, until the owner has said so. Where its owner
//! is not known, the Service that takes its frontend away is asked; where there is none, either,
//! the operator, by the command that deletes orphans.

use super::{Links, refusal};
use crate::ask::annotation::DISCONNECT;
use crate::ask::hold::is_set;
use crate::claim::Refusal;
use crate::draft::Draft;
use crate::own::tags::{is_name_of, owner};
use crate::own::{Base, name};
use crate::standing::private_link::{connected, unread_of};
use model::azure::PrivateLinkService;
use model::kubernetes::Service;
use model::policy::BalancerSku;
use model::report::Finding;
use model::world::{Fact, Need};
use model::{Policy, ServiceUid, World};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Connections that a message names.
const NAMED: usize = 3;

/// Refuses Services of which one would go.
pub(super) fn keep(draft: &mut Draft<'_>, links: &mut Links) {
    links.leaving.retain(|_, (link, causes)| {
        let found = causes.iter().filter_map(|uid| Some((uid, obstacle(draft, uid, link)?)));
        let found: Vec<(&ServiceUid, Finding)> = found.collect();
        let goes = found.is_empty();
        for (uid, finding) in found {
            draft.refuse(uid, Refusal::new(finding));
        }
        goes
    });
}

/// Whether private endpoints are connected to a Private Link Service of a Service that is gone
/// without having been released, as when its finalizers were taken off by hand: then what it had
/// stays, as it stays where no process saw the Service go. `None`: none is known to be connected,
/// the owner has agreed, or another Service owns it. Else the base names, in lower case, after
/// which the frontends that it stands before are called: what they name stays as well.
#[must_use]
pub fn bereft(world: &World, policy: &Policy, service: &Service) -> Option<BTreeSet<Arc<str>>> {
    if policy.sku != BalancerSku::Standard || is_set(service, DISCONNECT) {
        return None;
    }
    let base = service.uid.base_name();
    let is_there = |user: &str| {
        let mut others = world.kubernetes.services.values().filter(|s| s.uid != service.uid);
        others.any(|other| is_name_of(user, &other.name))
    };
    let mut all = world.azure.private_links.values().flat_map(Fact::each);
    let link = all.find(|link| {
        let owner = owner(link);
        let is_own = owner.is_some_and(|user| is_name_of(user, &service.name))
            || link.frontends.iter().any(|frontend| name::is_of(frontend.name(), &base));
        is_own && connected(link).next().is_some() && !owner.is_some_and(is_there)
    })?;
    let makers = link.frontends.iter().filter_map(|frontend| Base::of(frontend.name()));
    Some(makers.map(Arc::from).collect())
}

/// The list without which [`bereft`] can say nothing of a Service that is gone, while it has not
/// been read.
#[must_use]
pub fn unread_links(world: &World, policy: &Policy, service: &Service) -> Option<Need> {
    if policy.sku != BalancerSku::Standard || is_set(service, DISCONNECT) {
        return None;
    }
    unread_of(world, policy, service).map(Need::PrivateLinks)
}

fn obstacle(draft: &Draft<'_>, cause: &ServiceUid, link: &PrivateLinkService) -> Option<Finding> {
    let names: Vec<&str> = connected(link).map(|connection| connection.id.name()).collect();
    let service = draft.cases[cause].service;
    if names.is_empty() || is_set(service, DISCONNECT) {
        return None;
    }
    let value = service.annotations.get(DISCONNECT).map_or("", |value| value);
    let more = if names.len() > NAMED { ", …" } else { "" };
    let message = format!(
        "must be true before Private Link Service {} is deleted, because private endpoints are \
         connected to it ({}{more}); set it, or have them disconnected",
        link.id.name(),
        names[..names.len().min(NAMED)].join(", ")
    );
    Some(refusal(DISCONNECT, value, "PrivateLinkConnected", message))
}
