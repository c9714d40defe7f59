//! A Service of two families inside that goes from one load balancer to another and back, each time
//! to frontends of another name: these are called after the subnet that an owner names, and this
//! one names the subnet in which it is anyway, or none.

use super::Company;
use super::user::key;
use super::values::key::{INTERNAL, PLACED_ON, SUBNET};
use crate::check::form::told;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NAMESPACE: &str = "default";
const NAME: &str = "between";
const NUMBER: u64 = 790;
/// Two load balancers, and what the Service names on each: the cloud config's own subnet.
const BALANCERS: [(&str, Option<&str>); 2] = [("kubernetes", None), ("lb2", Some("nodes"))];

fn place() -> (String, String) {
    (NAMESPACE.to_owned(), NAME.to_owned())
}

/// Annotations for one of the two load balancers.
fn annotations((balancer, subnet): (&str, Option<&str>)) -> Value {
    json!({(key(INTERNAL)): "true", (key(PLACED_ON)): balancer, (key(SUBNET)): subnet})
}

fn service() -> Value {
    let mut service = objects::service(NAMESPACE, NUMBER);
    service["metadata"]["name"] = json!(NAME);
    let mut annotations = annotations(BALANCERS[0]);
    if let Some(all) = annotations.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    service["metadata"]["annotations"] = annotations;
    service["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
    service["spec"]["ipFamilies"] = json!(["IPv4", "IPv6"]);
    service
}

impl Company {
    /// It comes, or goes to the other load balancer. Only where owners choose between them.
    pub(crate) fn move_between(&mut self, stage: &mut Stage) {
        if self.scene.layout != Layout::Several || self.scene.has_selectors() {
            return;
        }
        let Some(standing) = self.services.get(&place()) else {
            self.services.insert(place(), service());
            self.tend(stage);
            return;
        };
        let home = standing["metadata"]["annotations"][key(PLACED_ON)] == BALANCERS[0].0;
        let patch = annotations(BALANCERS[usize::from(home)]);
        self.apply(stage, &place(), &json!({"metadata": {"annotations": patch}}));
    }
}

/// An address that its status has told since a revision, and then no longer: the private one of
/// either family goes along to the other load balancer.
pub(crate) fn lost(stage: &Stage, revision: u64) -> Option<String> {
    let events = stage.kubernetes.events_since("services", revision).ok()?;
    let own = events.iter().map(|event| &event.object).filter(|service| {
        let meta = &service["metadata"];
        meta["namespace"] == NAMESPACE && meta["name"] == NAME
    });
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for service in own {
        let told: BTreeSet<&str> = told(service).collect();
        if let Some(lost) = known.difference(&told).next() {
            return Some((*lost).to_owned());
        }
        known.extend(told);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;
    use crate::swarm::Pace;
    use crate::weather::Weather;
    use kube_emulator::{ObjectRef, Part, Patch};

    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn it_takes_both_addresses_along_and_a_lost_one_is_found() {
        let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 1_500 };
        let mut stage = Stage::new(Scene::plain(Layout::Several, 4, 7), pace, Weather::Fair, 1);
        stage.kubernetes.create(service(), stage.now_ms).expect("a new Service");
        stage.follow();
        assert!(stage.settle(DAY_MS));
        let revision = stage.kubernetes.revision();
        let object = || ObjectRef::new("services", NAMESPACE, NAME);
        for balancer in [BALANCERS[1], BALANCERS[0]] {
            let patch = Patch::Merge(json!({"metadata": {"annotations": annotations(balancer)}}));
            let patched = stage.kubernetes.patch(object(), Part::Main, &patch, stage.now_ms);
            patched.expect("it is patched");
            stage.follow();
            assert!(stage.settle(DAY_MS));
            assert_eq!(lost(&stage, revision), None, "on the way to {balancer:?}");
            assert_eq!(stage.breach, None);
        }
        let service = stage.kubernetes.get(object()).expect("it is there");
        assert_eq!(told(&service).count(), 2, "{service}");
        let ingress: Vec<&Value> =
            service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten().collect();
        let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": [ingress[0]]}}}));
        let patched = stage.kubernetes.patch(object(), Part::Status, &patch, stage.now_ms);
        patched.expect("its status is patched");
        assert_eq!(lost(&stage, revision), told(&service).nth(1).map(str::to_owned));
    }
}
