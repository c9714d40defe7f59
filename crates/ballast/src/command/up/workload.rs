//! The sample workload, and what it does by itself.

use super::objects::{Audience, Seat, WithStatus, node, pod, service};
use azure_emulator::{SampleGateway, SampleMachine, SampleOptions};
use kube_emulator::{ObjectRef, Part, Patch, Shared};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between two changes of an application's size.
const PACE: Duration = Duration::from_secs(4);
/// Numbers of pods an application goes through.
const SIZES: [u32; 6] = [3, 4, 5, 6, 4, 2];

/// What `up` fills the cluster with.
pub(super) struct Workload {
    store: Shared,
    sample: SampleOptions,
    machines: Vec<SampleMachine>,
    services: u32,
}

impl Workload {
    /// A workload with so many Services.
    pub(super) fn new(store: Shared, sample: &SampleOptions, services: u32) -> Self {
        Self { store, sample: sample.clone(), machines: sample.machines(), services }
    }

    /// Creates a node for each machine.
    pub(super) fn create_nodes(&self) {
        for (at, machine) in (0..).zip(&self.machines) {
            self.create("nodes", node(machine, &self.sample, at));
        }
    }

    /// Creates pods and Services; with the container load balancer, goes on changing the number of
    /// pods until stopped.
    pub(super) async fn act(&self, stop: CancellationToken) {
        let on_pods = self.sample.gateway == SampleGateway::WithDefaultNat;
        for at in 0..self.services {
            let (name, audience) = self.name(at);
            let pods = if at == 0 { 3 } else { 2 };
            for number in 0..pods {
                self.create_pod(&name, at, number, None);
            }
            self.create("services", (service(&name, audience), Value::Null));
        }
        if !on_pods {
            return;
        }
        for number in 0..2 {
            self.create_pod("worker", self.services, number, Some("team-a"));
        }
        let mut size = SIZES[0];
        for wanted in SIZES.into_iter().cycle().skip(1) {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PACE) => {}
            }
            for number in size..wanted {
                self.create_pod("web", 0, number, None);
            }
            for number in wanted..size {
                self.delete_pod(&format!("web-{number}"));
            }
            size = wanted;
        }
    }

    fn name(&self, at: u32) -> (String, Audience) {
        let on_pods = self.sample.gateway == SampleGateway::WithDefaultNat;
        match at {
            0 => ("web".to_owned(), Audience::Public),
            // The container load balancer is public only.
            1 if !on_pods => ("api".to_owned(), Audience::Internal),
            1 => ("api".to_owned(), Audience::Public),
            _ => (format!("app-{at}"), Audience::Public),
        }
    }

    fn create_pod(&self, app: &str, at: u32, number: u32, egress: Option<&str>) {
        let machines = u32::try_from(self.machines.len()).unwrap_or(1).max(1);
        let index = (at + number) % machines;
        let Some(machine) = self.machines.get(index as usize) else { return };
        let place = at * 16 + number + 2;
        let address = format!("10.244.{}.{}", index % 250 + place / 250, place % 250 + 2);
        let name = format!("{app}-{number}");
        self.create("pods", pod(app, &name, &Seat { machine, address }, egress));
    }

    fn delete_pod(&self, name: &str) {
        self.store.with(|store, now| {
            // A user may have deleted it first.
            let _ = store.delete(ObjectRef::new("pods", "default", name), now);
        });
    }

    fn create(&self, plural: &str, (object, status): WithStatus) {
        let at = |pointer: &str| -> String {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (namespace, name) = (at("/metadata/namespace"), at("/metadata/name"));
        let outcome = self.store.with(|store, now| {
            store.create(object, now)?;
            if status.is_null() {
                return Ok(());
            }
            let patch = Patch::Merge(json!({ "status": status }));
            let object = ObjectRef::new(plural, &namespace, &name);
            store.patch(object, Part::Status, &patch, now).map(|_| ())
        });
        if let Err(e) = outcome {
            tracing::error!("the sample's {plural} {name} cannot be created: {e}");
        }
    }
}
