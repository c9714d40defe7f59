//! A plan of many Services is read at one look.

use crate::support::run;
use serde_json::{Value, json};

const TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
/// A terminal's size.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

fn service(number: usize, annotations: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": format!("web-{number:02}"), "annotations": annotations,
            "uid": format!("{number:08}-aaaa-bbbb-cccc-000000000000")},
        "spec": {"type": "LoadBalancer", "ports": [
            {"port": 80, "targetPort": 8080, "nodePort": 30_080 + number}]}})
    .to_string()
}

/// Those that go through are counted; the one that its owner has to mend is named with the reason.
#[test]
fn fifty_new_services_and_a_refused_one_fit_on_a_screen() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vmss000000"},
        "spec": {"providerID": "azure:///subscriptions/sub/resourceGroups/rg/providers/\
            Microsoft.Compute/virtualMachineScaleSets/vmss/virtualMachines/0"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.224.0.4"}]}});
    let mut all: Vec<String> = (0..50).map(|number| service(number, &json!({}))).collect();
    all.extend([service(50, &json!({TIMEOUT: "soon"})), node.to_string()]);
    let config = json!({"cloud": "AzurePublicCloud", "tenantId": "tenant", "subscriptionId": "sub",
        "resourceGroup": "rg", "location": "eastus", "vnetName": "vnet", "subnetName": "nodes",
        "securityGroupName": "nsg", "primaryScaleSetName": "vmss", "loadBalancerSku": "standard",
        "loadBalancerBackendPoolConfigurationType": "nodeIP", "useManagedIdentityExtension": true});
    let manifests = write("all.yaml", &all.join("\n---\n"));
    let config = write("azure.json", &config.to_string());
    let (code, out, err) = run(&["plan", "--summary", "-f", &manifests, "--cloud-config", &config]);
    assert_eq!(code, 0, "{out}{err}");
    for part in [
        "load balancer: 1 to create\n",
        "public IP: 50 to create\n",
        "Addresses: 0 to change, 50 to create, 0 to release.\n",
        "50 Services new → programmed: ",
        " and 45 more\n",
        "default/web-50: ",
        "(got \"soon\")",
        " 1 refused.",
    ] {
        assert!(out.contains(part), "{part:?} is missing in:\n{out}");
    }
    let rows: usize = out.lines().map(|line| line.chars().count().div_ceil(COLUMNS).max(1)).sum();
    assert!(rows <= ROWS, "{rows} rows:\n{out}");
}
