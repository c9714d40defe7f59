use crate::shape::stage::{balancer, internal, policy, settled, uid, world};
use fixture::service_mut;
use model::azure::{LoadBalancer, Pool, Probe, Rest, Rule};
use model::kubernetes::{Service, TrafficPolicy, Wish};
use std::sync::Arc;

/// What puts a part on a load balancer.
type Add = fn(&mut LoadBalancer);

/// A Service about which nothing is known went without its finalizer, and another client has taken
/// its frontend away: nothing says whose its other parts are, nor whose a pool of another name is.
#[test]
fn a_load_balancer_outlives_our_last_frontend_where_anything_of_others_is_left() {
    let parts: [(&str, Add); 4] = [
        ("nothing", |_| ()),
        ("a rule", |balancer| {
            let name = Arc::from(format!("{}-TCP-82", uid(9).base_name()));
            let rule = &balancer.rules[0];
            let (frontend, probe) = (None, None);
            balancer.rules.push(Rule { name, frontend, probe, ..rule.clone() });
        }),
        ("a probe", |balancer| {
            let name = Arc::from(format!("{}-TCP-82", uid(9).base_name()));
            balancer.probes.push(Probe { name, ..balancer.probes[0].clone() });
        }),
        ("a pool", |balancer| {
            let (name, rest) = (Arc::from("theirs"), Rest::default());
            let (network, addresses, nics) = (None, Vec::new(), Default::default());
            balancer.pools.push(Pool { name, network, addresses, nics, rest });
        }),
    ];
    for (what, add) in parts {
        let mut world = settled(world(vec![internal(1, 80, &[])]));
        let all = world.azure.balancers.known_mut().expect("read");
        let id = policy().balancer_id("kubernetes-internal");
        add(Arc::make_mut(all.get_mut(&id).expect("it is there")));
        service_mut(&mut world, &uid(1)).wish = Wish::Nothing;
        let world = settled(world);
        let stays = world.azure.balancers.known().is_some_and(|all| all.contains_key(&id));
        assert_eq!(stays, what != "nothing", "{what}");
        if stays {
            let left = balancer(&world);
            let count = [left.frontends.len(), left.rules.len(), left.probes.len()];
            assert!(count.iter().sum::<usize>() <= 1, "{what}: {left:#?}");
        }
    }
}

/// The port that has a probe of its own has the number of the health check node port, by which the
/// probe of the others is named.
#[test]
fn two_probes_of_a_service_never_have_one_name() {
    let own = ("port_31000_health-probe_port", "8080");
    let mut service = internal(1, 80, &[own]);
    service.ports.push(fixture::port("more", 31_000, 30_999));
    let (traffic_policy, health_check_node_port) = (TrafficPolicy::Local, Some(31_000));
    let service = Service { traffic_policy, health_check_node_port, ..service };
    let mut last = service.clone();
    last.ports.reverse();
    for service in [service, last] {
        let world = settled(world(vec![service]));
        let balancer = balancer(&world);
        let probed = balancer.rules.iter().map(|rule| {
            let id = rule.probe.as_ref().expect("each has one");
            let probe = balancer.probes.iter().find(|probe| *probe.name == *id.name());
            (rule.frontend_port, probe.expect("it is there").port)
        });
        let mut probed: Vec<(u16, u16)> = probed.collect();
        probed.sort_unstable();
        assert_eq!(probed, [(80, 31_000), (31_000, 8080)]);
    }
}
