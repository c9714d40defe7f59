//! An IPv6-only Service that names the prefix of its public IP by the key for IPv6, or by the plain
//! key, which counts where that one is absent.

use super::Company;
use super::families::has_ipv4_beside;
use super::user::key;
use crate::random::Random;
use crate::scene::{Layout, network, objects};
use crate::stage::Stage;
use serde_json::json;

const NAMESPACE: &str = "default";
const NAME: &str = "ipv6-alone";
const NUMBER: u64 = 780;
const PREFIXES: [&str; 2] = ["azure-pip-prefix-id-ipv6", "azure-pip-prefix-id"];

impl Company {
    /// Creates it where another Service has an IPv4 frontend, and there is no Private Link Service.
    pub(crate) fn bring_ipv6_alone(&mut self, random: &mut Random, stage: &mut Stage) {
        let prefix = *random.pick(&PREFIXES);
        if self.scene.layout != Layout::Single || !has_ipv4_beside(&self.scene) {
            return;
        }
        let mut service = objects::service(NAMESPACE, NUMBER);
        service["metadata"]["name"] = json!(NAME);
        service["metadata"]["annotations"][key(prefix)] =
            json!(network("publicIPPrefixes/theirs-prefix6"));
        service["spec"]["ipFamilyPolicy"] = json!("SingleStack");
        service["spec"]["ipFamilies"] = json!(["IPv6"]);
        self.services.insert((NAMESPACE.to_owned(), NAME.to_owned()), service);
        self.tend(stage);
    }
}
