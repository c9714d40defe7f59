use super::*;
use model::kubernetes::{Endpoint, Target};

fn slice(name: &str, service: &str, endpoints: &[(&str, &str, Readiness)]) -> Fact {
    let endpoint = |(address, node, readiness): &(&str, &str, Readiness)| Endpoint {
        address: address.parse().unwrap(),
        node: Some(NodeName::new(node)),
        readiness: *readiness,
        target: Target::Own,
    };
    Fact::Slice(EndpointSlice {
        name: ServiceName::new("default", name),
        revision: "1".into(),
        owner: None,
        service: Some(ServiceName::new("default", service)),
        ports: Vec::new(),
        endpoints: endpoints.iter().map(endpoint).collect(),
        unready: Vec::new(),
    })
}

fn node(leaving: Option<Leaving>) -> Fact {
    Fact::Node(NodeFact { uid: "u1".to_owned(), leaving })
}

/// An agent of node `a` that has listed everything: Service `web` has a ready Pod here.
fn agent() -> Agent {
    let mut agent = Agent::new(NodeName::new("a"));
    agent.learn(Fact::Begin(Part::Slices));
    agent.learn(slice("web-1", "web", &[("10.0.0.1", "a", Readiness::Ready)]));
    agent.learn(Fact::End(Part::Slices));
    agent.learn(Fact::Begin(Part::Node));
    agent.learn(node(None));
    agent.learn(Fact::End(Part::Node));
    agent.learn(Fact::Begin(Part::Verdict));
    agent.learn(Fact::End(Part::Verdict));
    agent.learn(Fact::Proxy(Proxy::Healthy));
    agent
}

fn ill() -> Fact {
    Fact::Proxy(Proxy::Ill("HTTP 503".to_owned()))
}

fn statuses(agent: &Agent) -> [u16; 3] {
    ["/services/default/web", "/services/default/other", "/node"].map(|p| agent.answer(p).status)
}

#[test]
fn the_table_of_answers_holds() {
    let rows: [(&[Fact], [u16; 3]); 12] = [
        (&[], [200, 503, 200]),
        (&[ill()], [503, 503, 503]),
        (&[ill(), Fact::Verdict], [200, 503, 200]),
        (&[ill(), Fact::Verdict, Fact::VerdictGone], [503, 503, 503]),
        (&[ill(), Fact::Proxy(Proxy::Healthy)], [200, 503, 200]),
        (&[node(Some(Leaving::Draining))], [503, 503, 503]),
        (&[node(Some(Leaving::Excluded))], [503, 503, 503]),
        (&[node(Some(Leaving::ShuttingDown))], [503, 503, 503]),
        // The verdict is about proxies: a node that goes is gone for all that.
        (&[node(Some(Leaving::Draining)), Fact::Verdict], [503, 503, 503]),
        (&[Fact::NodeGone], [503, 503, 503]),
        (&[Fact::SliceGone(ServiceName::new("default", "web-1"))], [503, 503, 200]),
        (&[slice("o", "other", &[("10.0.0.9", "a", Readiness::Ready)])], [200, 200, 200]),
    ];
    for (facts, wanted) in rows {
        let mut agent = agent();
        facts.iter().cloned().for_each(|fact| agent.learn(fact));
        assert_eq!(statuses(&agent), wanted, "{facts:?}");
    }
}

#[test]
fn only_ready_endpoints_of_the_own_node_count_and_each_once() {
    let mut agent = agent();
    let web = ServiceName::new("default", "web");
    agent.learn(slice(
        "web-1",
        "web",
        &[
            ("10.0.0.1", "a", Readiness::Ready),
            ("10.0.0.2", "a", Readiness::NotReady),
            ("10.0.0.3", "a", Readiness::Terminating),
            ("10.0.0.4", "b", Readiness::Ready),
        ],
    ));
    assert_eq!(agent.endpoints(&web), 1);
    // While endpoints move from one slice to another both list them.
    let twice = [("10.0.0.1", "a", Readiness::Ready), ("10.0.0.5", "a", Readiness::Ready)];
    agent.learn(slice("web-2", "web", &twice));
    assert_eq!(agent.endpoints(&web), 2);
    // The second family lists the same Pods.
    agent.learn(slice("web-6", "web", &[("fd00::1", "a", Readiness::Ready)]));
    assert_eq!(agent.endpoints(&web), 2);
    assert_eq!(agent.answer("/services/default/web").endpoints, Some(2));
    assert_eq!(agent.local_services(), 1);
    for slice in ["web-1", "web-2", "web-6"] {
        agent.learn(Fact::SliceGone(ServiceName::new("default", slice)));
    }
    assert_eq!((agent.endpoints(&web), agent.local_services()), (0, 0));
}

#[test]
fn what_is_known_stays_while_it_is_listed_anew() {
    let mut agent = agent();
    agent.learn(ill());
    agent.learn(Fact::Verdict);
    for part in Part::ALL {
        agent.learn(Fact::Begin(part));
    }
    assert_eq!(statuses(&agent), [200, 503, 200], "a list under way changes nothing");
    agent.learn(Fact::End(Part::Verdict));
    assert_eq!(statuses(&agent), [503, 503, 503], "the verdict was not listed: it is over");
    agent.learn(Fact::Proxy(Proxy::Healthy));
    agent.learn(slice("web-2", "web", &[("10.0.0.2", "a", Readiness::Ready)]));
    agent.learn(Fact::End(Part::Slices));
    assert_eq!(agent.endpoints(&ServiceName::new("default", "web")), 1);
    agent.learn(Fact::End(Part::Node));
    assert_eq!(agent.leaving(), Some(Leaving::Deleted));
}

#[test]
fn nothing_is_answered_before_all_is_known() {
    let mut agent = Agent::new(NodeName::new("a"));
    for part in Part::ALL {
        assert!(!agent.is_ready());
        agent.learn(Fact::Begin(part));
        if part == Part::Node {
            agent.learn(node(None));
        }
        agent.learn(Fact::End(part));
    }
    assert!(!agent.is_ready(), "the proxy has not been asked");
    assert_eq!(agent.answer("/readyz").status, 503);
    assert_eq!(agent.answer("/node").status, 503);
    assert_eq!(agent.answer("/livez").status, 200);
    agent.learn(Fact::Proxy(Proxy::Healthy));
    assert!(agent.is_ready());
    assert_eq!(agent.answer("/readyz").status, 200);
    assert_eq!(agent.answer("/node?from=azure").status, 200);
    for path in ["/", "/services/default", "/services//web", "/services/a/b/c", "/nodes"] {
        assert_eq!(agent.answer(path).status, 404, "{path}");
    }
}

#[test]
fn a_proxy_is_reported_after_two_equal_answers_and_not_by_a_node_that_leaves() {
    let mut agent = agent();
    assert_eq!(agent.report(), None, "one answer is none");
    agent.learn(ill());
    assert_eq!(agent.report(), None);
    agent.learn(Fact::Proxy(Proxy::Healthy));
    assert_eq!(agent.report(), None, "a restart of a second is no news");
    agent.learn(Fact::Proxy(Proxy::Healthy));
    assert_eq!(agent.report(), Some(None));
    agent.learn(ill());
    agent.learn(Fact::Proxy(Proxy::Ill("refused".to_owned())));
    assert_eq!(agent.report(), Some(Some("refused")));
    agent.learn(node(Some(Leaving::Draining)));
    assert_eq!(agent.report(), Some(None));
}
