//! Nodes behind Standard load balancers without outbound connectivity.
//!
//! A machine in a pool of network interfaces loses Azure's default outbound access; a machine whose
//! address is in a pool keeps it:
//! <https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access>.

use crate::ask::findings::NO_WAY_OUT;
use crate::claim::placement::{Backends, Placement};
use crate::draft::Draft;
use crate::standing::pool;
use ipnet::IpNet;
use model::azure::{ForeignCollection, WayOut};
use model::kubernetes::Node;
use model::policy::{OutboundSnat, PoolKind};
use model::report::Finding;
use model::world::{Fact, Need};
use std::net::IpAddr;

/// Adds the finding `NoWayOut` where nodes have no SNAT by rules, no outbound rule, no public IP,
/// and nothing on their subnet. A subnet that cannot be read gives no finding.
///
/// Returns the read that decides it, if one is due; no Service waits for it.
pub(crate) fn note(draft: &mut Draft<'_>, placement: &Placement) -> Option<Need> {
    let policy = draft.policy;
    if policy.outbound_snat == OutboundSnat::Enabled || policy.subnet_name.is_empty() {
        return None;
    }
    let nodes = dependent(draft, placement);
    if nodes.is_empty() || has_outbound_rule(draft) {
        return None;
    }
    let id = policy.subnet_id(&policy.subnet_name);
    let need = Need::Subnet(id.clone());
    if draft.world.azure.is_unread(&need) {
        return Some(need);
    }
    let subnet = draft.world.azure.subnets.get(&id).and_then(Fact::known)?.as_ref()?;
    let is_shut = |(address, kind): &(IpAddr, PoolKind)| {
        // Other subnets are not read.
        let within = subnet.prefixes.iter().any(|range| range.contains(address));
        within
            && match subnet.way_out {
                WayOut::Possible => false,
                WayOut::Default => *kind == PoolKind::NodeNic,
                WayOut::Nothing => true,
            }
    };
    if nodes.iter().any(is_shut) {
        let message = format!(
            "with {{value}}, nodes in subnet {} have no way out to the Internet that Ballast can \
             see: no outbound rule, no NAT gateway, no route table, no ExternalIP; add a NAT \
             gateway to the subnet",
            subnet.id.name()
        );
        let key = NO_WAY_OUT.example().0;
        draft.told.findings.push(Finding::note(NO_WAY_OUT.name, key, "true", &message));
    }
    None
}

/// Addresses of nodes that are, or are about to be, backends of a load balancer with Services and
/// have no public IP of their own, with the kind of its pools.
fn dependent(draft: &Draft<'_>, placement: &Placement) -> Vec<(IpAddr, PoolKind)> {
    let mut found = Vec::new();
    for (id, seats) in placement.balancers.iter().filter(|(_, seats)| !seats.services.is_empty()) {
        let Backends::Nodes(nodes) = &seats.backends else { continue };
        let kind = pool::kind(draft, id);
        let behind = nodes.iter().filter(|node| !node.membership.is_left_out());
        let bound = behind.filter(|node| !has_public_ip(node));
        found.extend(bound.filter_map(|node| Some((*node.addresses.first()?, kind))));
    }
    found
}

/// Whether a node has an `ExternalIP`: among its ranges they are those of one address.
fn has_public_ip(node: &Node) -> bool {
    let is_one = |range: &IpNet| range.prefix_len() == range.max_prefix_len();
    node.ranges.iter().any(is_one)
}

/// Whether any load balancer has an outbound rule, whose pool may have the nodes.
fn has_outbound_rule(draft: &Draft<'_>) -> bool {
    let mut rules = draft.each_balancer().flat_map(|balancer| &balancer.foreign);
    rules.any(|rule| rule.collection == ForeignCollection::Outbound)
}

#[cfg(test)]
mod tests {
    use crate::shape::stage::{policy, public, world};
    use explain::forecast::settle;
    use model::azure::{ForeignCollection, ForeignRule, WayOut};
    use model::policy::{OutboundSnat, PoolKind};
    use model::report::Wait;
    use model::world::{Fact, Need};
    use model::{Policy, Report, World};
    use std::sync::Arc;

    fn closed(pools: PoolKind) -> Policy {
        Policy { pools, outbound_snat: OutboundSnat::Disabled, ..policy() }
    }

    /// A Service that stands, and its nodes in a subnet with this.
    fn stage(pools: PoolKind, way_out: WayOut) -> World {
        let world = world(vec![public(1, "default", &[])]);
        let (mut world, _) = settle(world, &closed(pools));
        let id = policy().subnet_id("nodes");
        let subnet = world.azure.subnets.get_mut(&id).and_then(Fact::known_mut);
        let subnet = subnet.and_then(Option::as_mut).expect("it is read");
        Arc::make_mut(subnet).way_out = way_out;
        world
    }

    fn needed(report: &Report) -> Vec<&Need> {
        report.needs.iter().filter(|need| matches!(need, Need::Subnet(_))).collect()
    }

    fn found(world: &World, policy: &Policy) -> Vec<String> {
        let (_, report) = crate::plan(world, policy);
        assert_eq!(needed(&report), Vec::<&Need>::new());
        let own = report.findings.iter().filter(|finding| finding.rule == "NoWayOut");
        own.map(ToString::to_string).collect()
    }

    /// Nodes whose addresses are in pools keep Azure's default outbound access.
    #[test]
    fn nodes_without_outbound_connectivity_have_a_finding() {
        let text = "disableOutboundSNAT: with \"true\", nodes in subnet nodes have no way out to \
                    the Internet that Ballast can see: no outbound rule, no NAT gateway, no route \
                    table, no ExternalIP; add a NAT gateway to the subnet";
        for (pools, way_out, count) in [
            (PoolKind::NodeNic, WayOut::Possible, 0),
            (PoolKind::NodeNic, WayOut::Default, 1),
            (PoolKind::NodeNic, WayOut::Nothing, 1),
            (PoolKind::NodeIp, WayOut::Possible, 0),
            (PoolKind::NodeIp, WayOut::Default, 0),
            (PoolKind::NodeIp, WayOut::Nothing, 1),
        ] {
            let world = stage(pools, way_out);
            let said = found(&world, &closed(pools));
            assert_eq!(said, vec![text.to_owned(); count], "{pools:?} {way_out:?}");
            let open = Policy { outbound_snat: OutboundSnat::Enabled, ..closed(pools) };
            assert_eq!(found(&world, &open), Vec::<String>::new(), "rules let them out");
        }
    }

    #[test]
    fn an_outbound_rule_or_an_address_of_their_own_lets_nodes_out() {
        let policy = closed(PoolKind::NodeNic);
        let shut = stage(PoolKind::NodeNic, WayOut::Nothing);
        assert_eq!(found(&shut, &policy).len(), 1);
        let mut ruled = shut.clone();
        let all = ruled.azure.balancers.known_mut().expect("they are read");
        let balancer = all.values_mut().next().expect("there is one");
        Arc::make_mut(balancer).foreign.push(ForeignRule {
            collection: ForeignCollection::Outbound,
            frontends: Vec::new(),
            ports: None,
            body: Default::default(),
        });
        assert_eq!(found(&ruled, &policy), Vec::<String>::new());
        let mut own = shut;
        for node in own.kubernetes.nodes.values_mut() {
            let pods = "10.244.0.0/24".parse().expect("a range");
            let outside = "198.51.100.4/32".parse().expect("a range");
            Arc::make_mut(node).ranges = vec![pods, outside];
        }
        assert_eq!(found(&own, &policy), Vec::<String>::new());
        for node in own.kubernetes.nodes.values_mut() {
            Arc::make_mut(node).ranges.truncate(1);
        }
        assert_eq!(found(&own, &policy).len(), 1, "a range of Pods is no address");
    }

    #[test]
    fn nothing_is_said_of_a_subnet_that_is_not_known() {
        let policy = closed(PoolKind::NodeNic);
        let shut = stage(PoolKind::NodeNic, WayOut::Nothing);
        let mut apart = shut.clone();
        for node in apart.kubernetes.nodes.values_mut() {
            Arc::make_mut(node).addresses = vec!["10.225.0.4".parse().expect("an address")];
        }
        assert_eq!(found(&apart, &policy), Vec::<String>::new());
        let id = policy.subnet_id("nodes");
        let mut hidden = shut.clone();
        hidden.azure.subnets.insert(id, Fact::Unreadable("Forbidden".into()));
        assert_eq!(found(&hidden, &policy), Vec::<String>::new());
    }

    #[test]
    fn the_subnet_is_read_where_it_decides_and_no_service_waits_for_it() {
        let policy = closed(PoolKind::NodeNic);
        let mut unread = stage(PoolKind::NodeNic, WayOut::Nothing);
        let id = policy.subnet_id("nodes");
        unread.azure.subnets.remove(&id);
        let (plan, report) = crate::plan(&unread, &policy);
        assert_eq!(needed(&report), [&Need::Subnet(id)]);
        let mut waits = report.services.values().flat_map(|service| &service.waits);
        assert!(!waits.any(|wait| matches!(wait, Wait::Reading(_))), "{plan:#?}");
        let open = Policy { outbound_snat: OutboundSnat::Enabled, ..policy };
        assert_eq!(needed(&crate::plan(&unread, &open).1), Vec::<&Need>::new());
    }
}
