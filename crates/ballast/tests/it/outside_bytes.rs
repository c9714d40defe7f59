//! Bytes that come in at the sockets and from the command line's files, as they are and damaged in
//! every way that a list can hold. `crates/sim/tests/it/decoders.rs` has the other doors, and
//! `fuzz/` opens all of them to .ci/fuzz.

#[path = "../../../../fuzz/damage.rs"]
mod damage;
#[allow(dead_code, reason = "the other doors are opened elsewhere")]
#[path = "../../../../fuzz/doors.rs"]
mod doors;
#[path = "../../../../fuzz/wire.rs"]
mod wire;

use damage::{after_head, corpus, damaged, whole};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn lines_of_a_watch() {
    // Behind the length of the pieces.
    let count = damaged("watch_stream", |_| 1, with_end(wire::watch_stream));
    assert!(count > 1_500, "{count}");
}

/// What was damaged is a line all the same.
fn with_end(open: impl Fn(&[u8])) -> impl Fn(&[u8]) {
    move |bytes| open(&[bytes, if bytes.ends_with(b"\n") { b"" } else { b"\n" }].concat())
}

#[test]
fn pages_of_a_list() {
    let count = damaged("list_page", whole, wire::list_page);
    assert!(count > 1_500, "{count}");
}

#[test]
fn leases() {
    let count = damaged("lease_record", whole, wire::lease_record);
    assert!(count > 300, "{count}");
}

#[test]
fn answers_of_token_endpoints() {
    let count = damaged("token_reply", whole, wire::token_reply);
    assert!(count > 300, "{count}");
}

#[test]
fn answers_of_arm_with_their_headers() {
    let count = damaged("arm_reply", after_head, wire::arm_reply);
    assert!(count > 200, "{count}");
}

#[test]
fn metadata_of_clouds() {
    let count = damaged("cloud_metadata", whole, wire::cloud_metadata);
    assert!(count > 200, "{count}");
}

#[test]
fn certificates() {
    assert_eq!(damaged("certificate", whole, wire::certificate), 0, "they are no JSON");
}

#[test]
fn manifests() {
    let count = damaged("manifests", whole, wire::manifests);
    assert!(count > 500, "{count}");
}

#[test]
fn snapshots() {
    let count = damaged("snapshot", whole, wire::snapshot);
    assert!(count > 1_000, "{count}");
}

#[test]
fn cloud_configs_and_their_secrets() {
    let text = |bytes: &[u8]| bytes.windows(6).position(|w| w == b"\n====\n").unwrap() + 6;
    let count = damaged("cloud_config_secret", text, wire::cloud_config_secret);
    assert!(count > 30, "{count}");
}

/// Header values as a server, a proxy and a stranger would write them.
#[test]
fn waits_and_limits_in_headers() {
    let waits = [
        "0",
        "17",
        "0.25",
        "1e3",
        "-1",
        "NaN",
        "inf",
        "18446744073709551615",
        "99999999999999999999",
        "Sun, 06 Nov 1994 08:49:42 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Fri, 32 Dec 9999 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Sun, 06 Nov 1994 08:49:42 +9999",
        "",
        " ",
        "\u{e4}",
        "soon",
    ];
    let limits = ["11999", "A;1", "A;1,B;2,;3,C;", ";", ",", ";;;1", "A;-1", "A;1e9", "\u{e4};7"];
    for wait in waits {
        for name in ["retry-after", "retry-after-ms", "x-ms-retry-after-ms"] {
            for limit in limits {
                let text =
                    format!("{name}: {wait}\nx-ms-ratelimit-remaining-resource: {limit}\n\n{{}}");
                wire::arm_reply(text.as_bytes());
            }
        }
    }
}

/// A target that is not entered, or a door without documents, is never opened.
#[test]
fn every_target_is_entered_and_has_documents() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(fuzz.join(folder)).unwrap();
        let stem =
            |path: std::path::PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        entries.map(|entry| stem(entry.unwrap().path())).collect()
    };
    let targets = names("targets");
    assert_eq!(targets, names("corpus"));
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    let doors = ["doors.rs", "steps.rs", "wire.rs"];
    let doors = doors.map(|f| std::fs::read_to_string(fuzz.join(f)).unwrap());
    for target in targets {
        assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
        let door = format!("pub fn {target}(");
        assert!(doors.iter().any(|text| text.contains(&door)), "{target}");
        assert!(!corpus(&target).is_empty());
    }
}

fn all_doors(bytes: &[u8]) {
    wire::watch_stream(bytes);
    wire::list_page(bytes);
    wire::lease_record(bytes);
    wire::token_reply(bytes);
    wire::arm_reply(bytes);
    wire::cloud_metadata(bytes);
    wire::certificate(bytes);
    wire::manifests(bytes);
    wire::snapshot(bytes);
    wire::cloud_config_secret(bytes);
}

fn documents() -> Vec<Vec<u8>> {
    let doors =
        ["watch_stream", "list_page", "lease_record", "token_reply", "arm_reply", "manifests"];
    doors.into_iter().flat_map(corpus).map(|(_, bytes)| bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_at_any_door(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        all_doors(&bytes);
    }

    /// A document of one door at all of them, with some bytes overwritten and others left out.
    #[test]
    fn documents_with_other_bytes_in_them(
        document in prop::sample::select(documents()),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()),
            1..5,
        ),
    ) {
        let mut bytes = document;
        for (at, byte, keep) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            if keep {
                bytes[at] = byte;
            } else {
                bytes.remove(at);
            }
        }
        all_doors(&bytes);
    }

    #[test]
    fn any_text_as_manifest(text in "[{}\\[\\]:,\"a-z0-9 \\n&*!|>.~-]{0,200}") {
        wire::manifests(text.as_bytes());
        wire::cloud_config_secret(text.as_bytes());
    }

    #[test]
    fn any_value_of_a_header(value in "[ -~]{0,40}", seconds in any::<u64>()) {
        for text in [value, seconds.to_string()] {
            let limit = format!("x-ms-ratelimit-remaining-resource: {text};{text}");
            let head = format!("retry-after: {text}\n{limit}");
            wire::arm_reply(head.as_bytes());
        }
    }
}
