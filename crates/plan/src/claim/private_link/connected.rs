//! Private Link Services with private endpoints connected. Who deletes one cuts off whoever is
//! behind those endpoints, often in other companies, and a new one has another alias: each has to
//! connect anew. So it stays, and its Service with it, until the owner has said so. Where its owner
//! is not known, the Service that takes its frontend away is asked.

use super::{Links, refusal};
use crate::ask::annotation::{DISCONNECT, truth};
use crate::claim::Refusal;
use crate::draft::Draft;
use model::ServiceUid;
use model::azure::{ConnectionState, PrivateLinkService};
use model::report::Finding;

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

fn obstacle(draft: &Draft<'_>, cause: &ServiceUid, link: &PrivateLinkService) -> Option<Finding> {
    let connected = link.connections.iter().filter(|c| c.state == ConnectionState::Connected);
    let names: Vec<&str> = connected.map(|connection| connection.id.name()).collect();
    let value = draft.cases[cause].service.annotations.get(DISCONNECT);
    let value = value.map_or("", |value| value);
    if names.is_empty() || truth(DISCONNECT).is_true(value) {
        return None;
    }
    let more = if names.len() > NAMED { ", …" } else { "" };
    let message = format!(
        "must be true before Private Link Service {} is deleted, because private endpoints are \
         connected to it ({}{more}); set it, or have them disconnected",
        link.id.name(),
        names[..names.len().min(NAMED)].join(", ")
    );
    Some(refusal(DISCONNECT, value, "PrivateLinkConnected", message))
}
