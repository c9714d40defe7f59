//! Which load balancers a Service may stand on.
//!
//! - One public and one internal load balancer: the one of its kind.
//! - One for each node set: that of the primary set; with `azure-load-balancer-mode` that of the
//!   set named, or any of them; a Service that stands stays when the last node of its set goes.
//! - Several: any that the Service's annotation, the configurations' selectors and
//!   `allowServicePlacement` leave. A Service stays where it stands, whatever the last one says.
//!   Configurations whose selectors match go before those without any.

use crate::asks::{Asks, Mode};
use crate::case::{Case, Service};
use crate::estate::{parts, same, text};
use crate::names;
use crate::selector::matches;
use crate::site::{Configuration, Layout};
use serde_json::Value;
use std::collections::BTreeSet;

/// Ids, lower case; empty where there is none for it.
pub(crate) fn eligible(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Vec<String> {
    let site = &case.site;
    let id = |name: &str| names::balancer_id(site, &names::balancer(name, asks.internal));
    match &site.layout {
        Layout::Single | Layout::Container => vec![id(&site.balancer_name)],
        Layout::PerSet { shared } => {
            let own = |set: &str| {
                let primary = site.primary_set.is_empty() || same(set, &site.primary_set);
                !primary && !shared.iter().any(|other| same(other, set))
            };
            let of_set = |set: &str| id(if own(set) { set } else { &site.balancer_name });
            // A set whose nodes are in no pool has no load balancer of its own.
            let backends = case.nodes.iter().filter(|node| !node.excluded && !node.control_plane);
            let sets: BTreeSet<&str> = backends.filter_map(|node| node.set.as_deref()).collect();
            let any = || {
                let primary = std::iter::once(id(&site.balancer_name));
                let with_nodes = sets.iter().map(|set| of_set(set));
                // A set whose last node has gone.
                let standing = case.estate.balancers().filter(|(id, balancer)| {
                    let set = names::called_after(id, asks.internal);
                    set.is_some_and(|set| of_set(set) == *id) && has_frontend(balancer, service)
                });
                let standing = standing.map(|(id, _)| id.to_owned());
                primary.chain(with_nodes).chain(standing).collect()
            };
            match &asks.mode {
                Mode::Primary => vec![id(&site.balancer_name)],
                Mode::Auto => any(),
                Mode::Set(set) => {
                    let wanted = of_set(set);
                    let known = !own(set)
                        || sets.iter().any(|other| same(other, set))
                        || case.estate.get(&wanted).is_some();
                    match known {
                        true => vec![wanted],
                        // The topic page's table calls it so.
                        false if same(set, "auto") => any(),
                        false => Vec::new(),
                    }
                }
            }
        }
        Layout::Several(elements) => {
            let fits = several(case, service, asks, elements);
            fits.iter().map(|element| id(&element.name)).collect()
        }
    }
}

fn several<'c>(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    elements: &'c [Configuration],
) -> Vec<&'c Configuration> {
    let named = |element: &&Configuration| {
        let wanted = asks.configurations.as_ref();
        wanted.is_none_or(|names| names.iter().any(|name| same(name, &element.name)))
    };
    let open = |element: &&Configuration| {
        element.allows_placement || stands_on(case, service, &element.name)
    };
    let labels = &service.object["metadata"]["labels"];
    let mut namespaces = case.scene.namespaces.iter();
    let namespace = namespaces.find(|n| text(&n["metadata"]["name"]) == service.namespace);
    let of_namespace = namespace.map_or(&Value::Null, |n| &n["metadata"]["labels"]);
    let selected =
        |selector: &Value, labels: &Value| selector.is_null() || matches(selector, labels);
    let fits: Vec<&Configuration> = elements
        .iter()
        .filter(named)
        .filter(open)
        .filter(|e| selected(&e.service_labels, labels))
        .filter(|e| selected(&e.namespace_labels, of_namespace))
        .collect();
    let chosen: Vec<&Configuration> = fits
        .iter()
        .copied()
        .filter(|e| !e.service_labels.is_null() || !e.namespace_labels.is_null())
        .collect();
    if chosen.is_empty() { fits } else { chosen }
}

/// Whether a load balancer is that of a configuration which takes no new Services.
pub(crate) fn is_closed(case: &Case<'_>, balancer: &str) -> bool {
    let Layout::Several(elements) = &case.site.layout else { return false };
    let mut closed = elements.iter().filter(|element| !element.allows_placement);
    closed.any(|element| {
        names::balancer_ids(&case.site, &element.name).iter().any(|id| id == balancer)
    })
}

/// Whether anything of a Service is on a configuration's public or internal load balancer.
fn stands_on(case: &Case<'_>, service: &Service<'_>, name: &str) -> bool {
    let ids = names::balancer_ids(&case.site, name);
    let mut standing = ids.iter().filter_map(|id| case.estate.get(id));
    standing.any(|balancer| has_part(balancer, service))
}

/// Whether a frontend or a rule has the Service's name: one that shares a frontend has only rules.
pub(crate) fn has_part(balancer: &Value, service: &Service<'_>) -> bool {
    let mut rules = parts(balancer, "loadBalancingRules");
    has_frontend(balancer, service)
        || rules.any(|rule| names::is_of(text(&rule["name"]), &service.base))
}

pub(crate) fn has_frontend(balancer: &Value, service: &Service<'_>) -> bool {
    let mut frontends = parts(balancer, "frontendIPConfigurations");
    frontends.any(|frontend| names::is_of(text(&frontend["name"]), &service.base))
}
