//! What tests of several parts start from.

use model::Policy;

/// A cloud config that says no more than it has to.
pub(crate) fn policy() -> Policy {
    let text = r#"{"tenantId": "t", "subscriptionId": "s", "resourceGroup": "rg",
        "location": "eastus", "vnetName": "v", "subnetName": "n", "securityGroupName": "g",
        "useManagedIdentityExtension": true}"#;
    let environment = Default::default();
    let sources =
        observe::config::Sources { text, cluster: "kubernetes", environment: &environment };
    observe::config::read(&sources).expect("a whole config").policy
}
