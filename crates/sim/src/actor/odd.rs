//! Owners who write what has no effect: unknown keys, keys for ports that the Service does not
//! have, lists with entries that do not count, flags that are neither true nor false. The owners
//! learn of it (`promise`), and have all else that they ask for.

use super::user::key;
use super::variety::OWNERS;
use super::{Company, wishes};
use crate::random::Random;
use crate::scene::Layout;
use crate::stage::Stage;
use serde_json::{Map, Value, json};

/// In how many of a thousand times that others change each owner writes one.
const WRITTEN: u64 = 350;

/// Keys with values, of which at least a part has no effect; `{port}` is a port of the Service.
const ODD: [(&str, &str); 11] = [
    ("azure-load-balancer-intern", "true"),
    ("azure-load-balancer-sku", "standard"),
    ("port_9_no_lb_rule", "true"),
    ("port_9_health-probe_interval", "7"),
    ("port_{port}_no_probe_rule", " true"),
    ("azure-allowed-service-tags", "Storage,,Sql"),
    ("azure-pip-tags", "team=net,alone,k8s-azure-mine=1,owner=me,a=b=c"),
    ("azure-load-balancer-disable-tcp-reset", "yes"),
    ("azure-disable-load-balancer-nsg-rule", "1"),
    ("azure-load-balancer-health-probe-protocol", "grpc"),
    ("azure-pls-visibility", "*"),
];

impl Company {
    /// Some owners of wishes write one, which stays until they next want something else.
    pub(crate) fn misspell(&mut self, random: &mut Random, stage: &mut Stage) {
        // What container load balancers make of annotations is judged by itself.
        if self.scene.layout == Layout::Containers {
            return;
        }
        for owner in OWNERS {
            let (written, odd) = (random.permille(WRITTEN), random.pick(&ODD));
            let place = ("default".to_owned(), wishes::name(owner));
            let Some(standing) = self.services.get(&place).filter(|_| written) else { continue };
            let port = standing["spec"]["ports"][0]["port"].to_string();
            let name = key(&odd.0.replace("{port}", &port));
            let annotations = Map::from_iter([(name, json!(odd.1))]);
            let patch = json!({"metadata": {"annotations": Value::Object(annotations)}});
            self.apply(stage, &place, &patch);
        }
    }
}
