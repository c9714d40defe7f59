//! Every key of the cloud config that is read stands in the config of some seed, or is listed here
//! with what tries it instead.

use observe::config::READ;
use serde_json::{Value, json};
use sim::fault::LATER;
use sim::run::SET_LATER;
use sim::scene::{LAYOUTS, Outbound, Scene, migration};
use std::collections::{BTreeMap, BTreeSet};

/// How Azure is reached: nothing of what is built follows from it.
const WAY: &str = "crates/observe/tests/facts/config.rs and crates/edge: how Azure is reached";

/// Keys that no seed draws.
const NOT_DRAWN: &[(&str, &str)] = &[
    ("disableAzureStackCloud", WAY),
    ("userAgent", WAY),
    ("networkResourceTenantID", WAY),
    ("identitySystem", WAY),
    ("aadClientCertPath", WAY),
    ("aadClientCertPassword", WAY),
    ("useManagedIdentityExtension", WAY),
    ("userAssignedIdentityID", WAY),
    ("aadFederatedTokenFile", WAY),
    ("useFederatedWorkloadIdentityExtension", WAY),
    ("auxiliaryTokenProvider", WAY),
    ("aadMSIDataPlaneIdentityPath", WAY),
    ("cloudConfigType", WAY),
    ("enableMigrateToIPBasedBackendPoolAPI", "crates/sim/tests/it/migrations.rs"),
    ("healthCheckMajorityPercent", "crates/health: agents go by it"),
];

/// Keys with a value in the config of one of many scenes, or in what operators change it to.
fn drawn() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut note = |config: &Value| {
        keys.extend(config.as_object().into_iter().flatten().map(|(key, _)| key.clone()));
    };
    for (layout, _) in LAYOUTS {
        for uids in 0..64 {
            for outbound in [Outbound::None, Outbound::Theirs] {
                let with = LATER.iter().copied().collect();
                let scene = Scene { outbound, with, ..Scene::plain(layout, 3, uids) };
                note(&scene.config(&json!({})).written);
            }
        }
    }
    note(&migration());
    SET_LATER.iter().for_each(|key| note(&json!({*key: true})));
    keys
}

#[test]
fn every_key_of_the_cloud_config_is_drawn_or_listed() {
    let drawn = drawn();
    let listed: BTreeMap<&str, &str> = NOT_DRAWN.iter().copied().collect();
    assert_eq!(listed.len(), NOT_DRAWN.len(), "each once");
    for key in READ {
        let (drawn, why) = (drawn.contains(*key), listed.get(key));
        assert_ne!(drawn, why.is_some(), "{key}: drawn {drawn}, listed {why:?}");
    }
    let unread: Vec<_> = listed.keys().filter(|key| !READ.contains(key)).collect();
    assert!(unread.is_empty(), "nothing reads {unread:?}");
}
