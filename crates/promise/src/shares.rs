//! How load balancers share the nodes out.
//!
//! - One load balancer has all of them.
//! - One for each node set has those of its set; that of the primary set also has those of sets
//!   without one of their own.
//! - Several: a node of a configuration's primary set is that configuration's, if it has a load
//!   balancer. Others belong to one whose node selector matches, else to one without. A node is in
//!   the pools of one configuration.
//! - A node that comes goes where the fewest nodes are of the configurations that it may belong to.
//!   One that is there stays.

use crate::Broken;
use crate::asks::Family;
use crate::case::Case;
use crate::estate::{Estate, id, parts, same, text};
use crate::names;
use crate::nodes::Node;
use crate::pools::{self, Stance};
use crate::selector::matches;
use crate::site::{Configuration, Layout};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a node is a load balancer's.
pub(crate) fn stance(case: &Case<'_>, balancer: &Value, node: &Node<'_>) -> Stance {
    let name = names::public_name(text(&balancer["id"]));
    match &case.site.layout {
        Layout::Single | Layout::Container => Stance::Must,
        Layout::PerSet { shared } => match &node.set {
            None => Stance::May,
            Some(set) => {
                let primary = case.site.primary_set.is_empty()
                    || same(set, &case.site.primary_set)
                    || shared.iter().any(|other| same(other, set));
                let home = if primary { &case.site.balancer_name } else { set };
                if same(home, name) { Stance::Must } else { Stance::Never }
            }
        },
        Layout::Several(elements) => match &possible(case, elements, node)[..] {
            _ if node.set.is_none() => Stance::May,
            [one] if same(&one.name, name) => Stance::Must,
            many if many.iter().any(|element| same(&element.name, name)) => Stance::May,
            _ => Stance::Never,
        },
    }
}

/// Configurations that a node may belong to.
fn possible<'c>(
    case: &Case<'_>,
    elements: &'c [Configuration],
    node: &Node<'_>,
) -> Vec<&'c Configuration> {
    let stands = |element: &&Configuration| !balancers(case, element).is_empty();
    let own = |element: &Configuration| {
        node.set.as_deref().is_some_and(|set| same(set, &element.primary_set))
    };
    let standing: Vec<&Configuration> = elements.iter().filter(stands).collect();
    if let Some(home) = standing.iter().find(|element| own(element)) {
        return vec![home];
    }
    let selects = |element: &Configuration| {
        !element.node_labels.is_null() && matches(&element.node_labels, node.labels)
    };
    let selected: Vec<&Configuration> =
        standing.iter().copied().filter(|element| selects(element)).collect();
    if !selected.is_empty() {
        return selected;
    }
    standing.into_iter().filter(|element| element.node_labels.is_null()).collect()
}

/// Several: each node that may be in pools of more than one configuration is in those of one.
pub(crate) fn judge(case: &Case<'_>, found: &mut Vec<String>) {
    let Layout::Several(elements) = &case.site.layout else { return };
    for node in &case.nodes {
        let general =
            Family::BOTH.iter().map(|family| pools::general(case, case.site.pools, *family, node));
        let may = possible(case, elements, node);
        let sure = general.into_iter().any(|stance| stance == Stance::Must) && node.set.is_some();
        if may.len() < 2 || !sure {
            continue;
        }
        let holds = |element: &&&Configuration| {
            let mut all = balancers(case, element).into_iter();
            all.any(|balancer| pools::held(case, balancer).contains(node.name))
        };
        let on: Vec<&str> = may.iter().filter(holds).map(|element| &*element.name).collect();
        // One that only others use need not have a pool of ours, and one of Local Services alone
        // has none but theirs: whoever is its node is seen in no pool of the cluster's.
        let ours = may.iter().all(|element| is_used(case, element) && has_pool(case, element));
        if on.len() > 1 || (on.is_empty() && ours) {
            let name = node.name;
            found.push(format!("node {name} is behind {on:?}; it must be behind one of several"));
        }
    }
}

/// Judges the nodes that have come since `earlier`; nothing else has changed meanwhile.
///
/// The last of those that came to a configuration found no other with fewer nodes; so it has too
/// many only where that is true of none of them. A node that is in no pool yet may count for one
/// that it may belong to: it has no address, say.
pub(crate) fn judge_newcomers(case: &Case<'_>, earlier: &Estate<'_>, broken: &mut Vec<Broken>) {
    let Layout::Several(elements) = &case.site.layout else { return };
    let before: BTreeSet<&str> =
        earlier.balancers().flat_map(|(_, balancer)| pools::held(case, balancer)).collect();
    let counted = elements.iter().filter(|element| has_pool(case, element));
    let nodes: BTreeMap<&str, BTreeSet<&str>> =
        counted.map(|element| (&*element.name, members(case, element))).collect();
    let outside = |node: &&Node<'_>| {
        !node.excluded && !node.control_plane && !nodes.values().any(|n| n.contains(node.name))
    };
    let slack = |element: &Configuration| {
        let mut all: Vec<&Node<'_>> = case.nodes.iter().filter(outside).collect();
        all.retain(|node| possible(case, elements, node).iter().any(|e| e.name == element.name));
        all.len()
    };
    for (name, held) in &nodes {
        let come = case.nodes.iter().filter(|n| held.contains(n.name) && !before.contains(n.name));
        let emptier = |node: &Node<'_>| {
            let mut may = possible(case, elements, node).into_iter();
            may.find_map(|other| {
                nodes.get(&*other.name).filter(|o| o.len() + slack(other) + 1 < held.len())
            })
        };
        let all: Vec<Option<&BTreeSet<&str>>> = come.map(emptier).collect();
        if let (Some(Some(other)), false) = (all.first(), all.iter().any(Option::is_none)) {
            let text = format!(
                "of {} nodes of {name} some have come; another had {}",
                held.len(),
                other.len()
            );
            broken.push(Broken { service: None, promise: "spread", text });
        }
    }
}

/// Nodes of a configuration.
fn members<'a>(case: &'a Case<'_>, element: &Configuration) -> BTreeSet<&'a str> {
    balancers(case, element).into_iter().flat_map(|b| pools::held(case, b)).collect()
}

/// The load balancers of a configuration that exist.
fn balancers<'a>(case: &Case<'a>, element: &Configuration) -> Vec<&'a Value> {
    let ids = names::balancer_ids(&case.site, &element.name);
    ids.iter().filter_map(|id| case.estate.get(id)).collect()
}

/// Whether a configuration's load balancers have a pool of all of its nodes.
fn has_pool(case: &Case<'_>, element: &Configuration) -> bool {
    let names = Family::BOTH.map(|family| names::pool(&case.site, family));
    let mut pools =
        balancers(case, element).into_iter().flat_map(|b| parts(b, "backendAddressPools"));
    pools.any(|pool| names.iter().any(|name| same(text(&pool["name"]), name)))
}

/// Whether a Service stands on a configuration.
fn is_used(case: &Case<'_>, element: &Configuration) -> bool {
    let own: Vec<String> = balancers(case, element).iter().map(|b| id(&b["id"])).collect();
    case.places.values().any(|place| own.contains(&id(&place.balancer["id"])))
}
