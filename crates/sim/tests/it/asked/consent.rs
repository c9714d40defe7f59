//! Addresses, links and public IPs that Services of several namespaces name.

use super::addresses::brought;
use super::view::*;
use serde_json::json;

const PIN: &str = "azure-load-balancer-ipv4";
const SHARE: &str = "ballast.dev/share-with-namespaces";

/// [frontends, status] An address is shared within a namespace; across namespaces with the first
/// holder's consent. Who shares it keeps it.
#[test]
fn an_address_of_another_namespace() {
    let mut s = asked(web("web"));
    let before = s.lines(&["rule", "open"]);
    s.ask(web("thief").of("evil").ports(&["TCP 81 30181"]).with(&[(PIN, "20.0.0.1")]));
    let refusal = s.refusal("thief");
    assert!(refusal.contains("held by Service default/web of another namespace"), "{refusal}");
    assert!(refusal.contains(SHARE), "{refusal}");
    is(&s.lines(&["rule", "open"]), &before);
    is(&s.lines(&["status"]), "status web 20.0.0.1\nstatus thief");
    s.ask(web("twin").ports(&["TCP 82 30182"]).with(&[(PIN, "20.0.0.1")]));
    assert_eq!(s.refusal("twin"), "");
    s.annotate("web", &[(SHARE, Some("team, evil"))]);
    assert_eq!(s.refusal("thief"), "");
    assert!(s.lines(&["status"]).contains("status thief 20.0.0.1"), "{}", s.text());
    s.annotate("web", &[(SHARE, None)]);
    assert!(s.lines(&["status"]).contains("status thief 20.0.0.1"), "{}", s.text());
    assert_eq!(s.refusal("thief"), "");
    s.ask(web("other").of("more").ports(&["TCP 83 30183"]).with(&[(PIN, "20.0.0.1")]));
    assert!(s.refusal("other").contains("default/web"), "{}", s.refusal("other"));
}

/// [frontends] The cloud config allows sharing for all, or for none.
#[test]
fn what_the_config_says_of_sharing() {
    for (config, shared) in [
        (json!({"allowSharingAcrossNamespaces": true}), true),
        (json!({"tenancy": "strict"}), false),
    ] {
        let mut s = stage(&config);
        let lets = if shared { "" } else { "*" };
        s.ask(web("web").internal().with(&[(PIN, "10.224.9.9"), (SHARE, lets)]));
        let thief = web("thief").of("evil").internal().ports(&["TCP 81 30181"]);
        s.ask(thief.with(&[(PIN, "10.224.9.9")]));
        let refusal = s.refusal("thief");
        assert_eq!(refusal.is_empty(), shared, "{refusal}");
        assert!(shared || refusal.contains("tenancy: strict"), "{refusal}");
        s.ask(web("twin").internal().ports(&["TCP 82 30182"]).with(&[(PIN, "10.224.9.9")]));
        assert_eq!(s.refusal("twin"), "");
    }
}

/// [public IPs] `tenancy: strict`: groups, public IPs and additional addresses that no list has.
#[test]
fn what_is_not_listed_is_refused() {
    let config = json!({"tenancy": "strict", "allowedBYOPublicIPs": "listed"});
    let pips = vec![
        brought("rg", "byo", "20.50.1.1", json!({})),
        brought("rg", "listed", "20.50.1.2", json!({})),
    ];
    let mut s = stage_with(&config, pips);
    for (at, (key, value, list)) in [
        ("azure-pip-name", "byo", "allowedBYOPublicIPs of the cloud config lists (listed)"),
        (PIN, "20.50.1.1", "allowedBYOPublicIPs"),
        ("azure-load-balancer-resource-group", "ips", "allowedResourceGroups"),
        ("azure-additional-public-ips", "20.9.9.9", "allowedAdditionalPublicIPs"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("bold{at}");
        let port = format!("TCP {} {}", 90 + at, 30090 + at);
        s.ask(web(&name).ports(&[&port]).with(&[(key, value)]));
        let refusal = s.refusal(&name);
        let says = [key, value, list].iter().all(|word| refusal.contains(word));
        assert!(says, "{key}: {refusal}");
    }
    s.ask(web("fine").with(&[("azure-pip-name", "listed")]));
    assert_eq!(s.refusal("fine"), "");
}
