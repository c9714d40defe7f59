//! S3: a Service that gets other public IPs is reached at the ones that it has until the others are
//! there: while it waits for them its rules stay.

use super::azure::Write;
use super::form::parts;
use super::tenants::is_refused;
use crate::actor::movers::is_mover;
use crate::stage::Stage;
use crate::tally::count;
use crate::weather::Weather;
use plan::ask::annotation::full;
use serde_json::Value;

/// The tag that names who uses a public IP.
const SERVICE: &str = "k8s-azure-service";

impl Stage {
    /// L1: one of these Services that says of itself that it is refused. What it asks for it can
    /// have: nothing stands in its way but what it is about to leave. What another Service keeps
    /// does: a DNS label stays on a public IP as long as that does.
    pub(crate) fn stuck_mover(&self) -> Option<String> {
        let services = self.kubernetes.list("services", None);
        services.iter().find_map(|service| {
            let text = |key: &str| service["metadata"][key].as_str().unwrap_or("");
            let name = format!("{}/{}", text("namespace"), text("name"));
            let stuck =
                is_mover(&name) && is_refused(service) && !self.is_kept_by_another(service, &name);
            stuck.then(|| format!("{name} is refused what it leaves itself"))
        })
    }

    /// Whether a public IP with the DNS label that a Service asks for is another's, too.
    fn is_kept_by_another(&self, service: &Value, name: &str) -> bool {
        let label = &service["metadata"]["annotations"][full("azure-dns-label-name")];
        self.azure.resources_of("Microsoft.Network/publicIPAddresses").iter().any(|ip| {
            let users = ip["tags"][SERVICE].as_str().unwrap_or("");
            let has = &ip["properties"]["dnsSettings"]["domainNameLabel"];
            has.is_string() && has == label && users.split(',').any(|user| user != name)
        })
    }

    /// A write that takes a rule off a load balancer, while nothing goes wrong and people have not
    /// edited what its Service has: a write that Azure loses, or a hand, takes rules off with no
    /// write of ours. Judged of Services whose owners change nothing else: theirs is the same rule
    /// before and after.
    pub(super) fn check_steadiness(&mut self, write: &Write<'_>) {
        let (Some(before), Some(after)) = (write.before, write.after) else { return };
        if !matches!(self.weather, Weather::Fair) {
            return;
        }
        let is = parts(after, "loadBalancingRules");
        for name in parts(before, "loadBalancingRules").into_keys() {
            let uid = self.truth.owner_of(&name).filter(|uid| !self.was_service_touched(uid));
            let owner = uid.and_then(|uid| self.truth.services.get(uid));
            let Some(owner) = owner.filter(|o| o.wants && is_mover(&o.name)) else { continue };
            let owner = owner.name.clone();
            count(&mut self.tally.checks, "S3");
            if !is.contains_key(&name) {
                self.fail("S3", format!("{name} of {owner} went before its other address came"));
                return;
            }
        }
    }
}
