//! A Service of IPv6 alone that says by the keys for IPv6 where its public IP comes from. Where
//! these are absent the plain ones count.

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
    /// It comes where an IPv4 frontend of others stands beside it, and no Private Link Service.
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
