//! EndpointSlices that say in every way whose they are: by an owner reference, a label, both or
//! neither, of this Service, of the Service of the same name in another namespace, of none; and
//! from both namespaces. A slice is a Service's of its own namespace alone, and where label and
//! owner reference differ it is nobody's.

use super::{Company, living};
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use serde_json::{Value, json};

/// Each has a Service of the name.
const NAMESPACES: [&str; 2] = ["default", "team"];
const NAME: &str = "titled";
/// Labels; the last one names no Service.
const LABELS: [Option<&str>; 3] = [None, Some(NAME), Some("untitled")];
const NUMBER: u64 = 750;
const HEALTH_PORT: u64 = 32_760;
/// Where the last parts of the slices' addresses begin.
const FIRST: usize = 10;

/// Whom an owner reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    /// An object of another kind, as a controller of its own kind of endpoints writes it.
    Other,
    /// The Service of a namespace.
    Service(usize),
}

const OWNERS: [Owner; 4] = [Owner::Nobody, Owner::Other, Owner::Service(0), Owner::Service(1)];

/// A Service without selector: its slices are these.
fn service(at: usize, layout: Layout) -> Value {
    let number = NUMBER + at as u64;
    let mut service = objects::service(NAMESPACES[at], number);
    service["metadata"]["name"] = json!(NAME);
    if let Some(spec) = service["spec"].as_object_mut() {
        spec.shift_remove("selector");
    }
    if layout == Layout::Several {
        // Which nodes are behind it depends on its slices.
        service["spec"]["externalTrafficPolicy"] = json!("Local");
        service["spec"]["healthCheckNodePort"] = json!(HEALTH_PORT + at as u64);
    }
    service
}

/// Whether a slice of a namespace is that namespace's Service's.
fn is_own(at: usize, owner: Owner, label: Option<&str>) -> bool {
    match owner {
        Owner::Nobody | Owner::Other => label == Some(NAME),
        Owner::Service(of) => of == at && label.is_none_or(|label| label == NAME),
    }
}

fn slice(
    (at, owner, label): (usize, Owner, Option<&str>),
    uids: &[Value; 2],
    number: usize,
    node: &Value,
) -> Value {
    let owners = match owner {
        Owner::Nobody => json!([]),
        Owner::Other => json!([{"apiVersion": "example.com/v1", "kind": "Mesh", "name": NAME,
            "uid": uids[1 - at]}]),
        Owner::Service(of) => {
            json!([{"apiVersion": "v1", "kind": "Service", "name": NAME, "uid": uids[of]}])
        }
    };
    let labels = label.map_or(json!({}), |label| json!({"kubernetes.io/service-name": label}));
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{NAME}-{number}"), "namespace": NAMESPACES[at],
            "labels": labels, "ownerReferences": owners},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [format!("10.244.6.{}", FIRST + number)], "nodeName": node,
            "conditions": {"ready": true, "serving": true, "terminating": false}}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]})
}

impl Company {
    /// The Services come with all slices. Those that are nobody's are on another node, where there
    /// is one.
    pub(crate) fn bring_titled(&mut self, stage: &mut Stage) {
        let layout = self.scene.layout;
        if !matches!(layout, Layout::Containers | Layout::Several) {
            return;
        }
        for (at, namespace) in NAMESPACES.iter().enumerate() {
            let place = ((*namespace).to_owned(), NAME.to_owned());
            self.services.insert(place, service(at, layout));
        }
        self.tend(stage);
        let uid = |namespace: &str| {
            let service = living(stage, "services", namespace, NAME)?;
            Some(service["metadata"]["uid"].clone())
        };
        let uids = NAMESPACES.map(uid);
        let name = |node: &Value| node["metadata"]["name"].clone();
        let (first, last) = (self.nodes.values().next(), self.nodes.values().next_back());
        let ([Some(one), Some(other)], Some(first), Some(last)) = (uids, first, last) else {
            return;
        };
        let (uids, first, last) = ([one, other], name(first), name(last));
        let mut number = 0;
        for at in 0..NAMESPACES.len() {
            for owner in OWNERS {
                for label in LABELS {
                    let node = if is_own(at, owner, label) { &first } else { &last };
                    let slice = slice((at, owner, label), &uids, number, node);
                    let made = stage.kubernetes.create(slice, stage.now_ms);
                    if let Err(error) = made {
                        let text = format!("the actors' own slice is refused: {}", error.message());
                        stage.fail("actors", text);
                    }
                    number += 1;
                }
            }
        }
        stage.follow();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Service's addresses in the Service Gateway.
    fn listed(stage: &Stage, namespace: &str) -> Vec<String> {
        let service = living(stage, "services", namespace, NAME).expect("it is there");
        let uid = service["metadata"]["uid"].as_str().expect("it has one").to_lowercase();
        let tables = stage.azure.gateway(&crate::scene::gateway()).expect("there is one");
        let rows = crate::entries::entries(&tables).into_iter();
        rows.filter(|row| row.2 == uid).map(|row| row.1).collect()
    }

    #[test]
    fn a_slice_counts_in_its_own_namespace_where_all_that_it_says_agrees() {
        let mut stage = Stage::plain(Layout::Containers, 0);
        let swarm = crate::swarm::Swarm::draw(
            &crate::random::Random::new(7),
            crate::swarm::Profile::Calm,
            &std::collections::BTreeSet::new(),
        );
        let scene = stage.scene.clone();
        let mut company = Company::new(&crate::swarm::Swarm { scene, ..swarm });
        company.bring_titled(&mut stage);
        assert!(stage.settle(3_600_000));
        assert_eq!(stage.breach, None);
        // By the label alone, beside an owner of another kind, or with the owner's; and by the
        // owner alone.
        assert_eq!(
            listed(&stage, "default"),
            ["10.244.6.11", "10.244.6.14", "10.244.6.16", "10.244.6.17"]
        );
        assert_eq!(
            listed(&stage, "team"),
            ["10.244.6.23", "10.244.6.26", "10.244.6.31", "10.244.6.32"]
        );
        assert_eq!(stage.astray(), Vec::<String>::new());
    }
}
