//! What stands before Ballast: a public IP that a Service takes, and whose it is afterwards.

use crate::support::*;
use serde_json::{Value, json};
use sim::{Laboratory, Promises};

fn address(lab: &Laboratory) -> Value {
    let all = lab.kubernetes.list("services", None);
    let web = all.iter().find(|service| service["metadata"]["name"] == "web-0000");
    web.expect("the Service")["status"]["loadBalancer"]["ingress"][0]["ip"].clone()
}

/// docs/operating.md, "Adopting what exists": with the tags a public IP goes with its Service.
#[test]
fn a_public_ip_is_deleted_with_its_service_once_its_tags_hand_it_over() {
    for handed_over in [false, true] {
        let mut lab = laboratory(&json!({}));
        // A BYO public IP has no tag of ours, but what people put there.
        lab.promises = Promises::NotJudged;
        let mut web = service(0);
        let key = "service.beta.kubernetes.io/azure-pip-name";
        web["metadata"]["annotations"] = json!({key: "byo-pip"});
        create(&mut lab, web);
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!(address(&lab), "20.50.0.10");
        if handed_over {
            edit(&mut lab, "publicIPAddresses/byo-pip", |body| {
                body["tags"] = json!({"k8s-azure-service": "default/web-0000",
                    "k8s-azure-cluster-name": "kubernetes"});
            });
            lab.pass(INTERVAL_MS);
            assert!(lab.settle(DAY_MS));
            assert_eq!(address(&lab), "20.50.0.10");
        }
        delete(&mut lab, "default", "web-0000");
        assert!(lab.settle(DAY_MS));
        let left = lab.azure.resource(&network("publicIPAddresses/byo-pip"));
        assert_eq!(left.is_none(), handed_over);
    }
}

/// `ballast adopt --undo`: the marks lose their values, also of a public IP that Ballast made.
/// The running controller does not restore them, and neither does the next one.
#[test]
fn a_public_ip_that_is_taken_back_outlives_its_service() {
    let mut lab = laboratory(&json!({}));
    lab.promises = Promises::NotJudged;
    create(&mut lab, service(0));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let name = format!("publicIPAddresses/kubernetes-{}", base_of(&lab, "web-0000"));
    let before = address(&lab);
    let byo = json!({"k8s-azure-service": "", "k8s-azure-cluster-name": ""});
    // Once the marks are read without values, the tags may go altogether.
    for tags in [byo, json!({})] {
        edit(&mut lab, &name, |body| body["tags"] = tags.clone());
        lab.pass(INTERVAL_MS);
        assert!(lab.settle(DAY_MS));
        let mark = "k8s-azure-service";
        assert_eq!(resource(&lab, &name)["tags"][mark], tags[mark]);
        assert_eq!(address(&lab), before);
    }
    lab.restart();
    assert!(lab.settle(DAY_MS));
    assert_eq!(address(&lab), before);
    delete(&mut lab, "default", "web-0000");
    assert!(lab.settle(DAY_MS));
    assert!(lab.azure.resource(&network(&name)).is_some());
}
