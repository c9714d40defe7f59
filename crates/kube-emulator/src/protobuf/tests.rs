use super::*;

/// A length-delimited field, by hand.
fn put(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    assert!(length < 128, "one byte of length");
    [&[number << 3 | 2, length], bytes].concat()
}

fn enveloped(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [put(1, version.as_bytes()), put(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), put(1, &meta), put(2, raw), put(3, b""), put(4, b"")].concat()
}

fn both_ways(version: &str, kind: &str, raw: &[u8], want: Value) {
    let bytes = enveloped(version, kind, raw);
    let mut object = want;
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    assert_eq!(decode(&bytes).unwrap(), object, "{kind} read");
    assert_eq!(encode(&object).unwrap(), bytes, "{kind} written");
}

#[test]
fn maps_of_text_bytes_quantities_and_times_go_both_ways() {
    let data = put(2, &[put(1, b"k"), put(2, b"v")].concat());
    both_ways("v1", "ConfigMap", &data, json!({"data": {"k": "v"}}));
    both_ways("v1", "Secret", &data, json!({"data": {"k": "dg=="}}));
    let cpu = put(1, &[put(1, b"cpu"), put(2, &put(1, b"3800m"))].concat());
    both_ways("v1", "Node", &put(3, &cpu), json!({"status": {"capacity": {"cpu": "3800m"}}}));
    let pod = put(2, &[put(1, b"p"), put(2, &[0x08, 5, 0x10, 0])].concat());
    let want = json!({"status": {"disruptedPods": {"p": "1970-01-01T00:00:05Z"}}});
    both_ways("policy/v1", "PodDisruptionBudget", &put(3, &pod), want);
}

#[test]
fn numbers_and_texts_of_one_member_go_both_ways() {
    let port = |target: &[u8]| put(2, &put(1, &[&[0x18, 80][..], &put(4, target)].concat()));
    let want = |target: Value| json!({"spec": {"ports": [{"port": 80, "targetPort": target}]}});
    let text = [&[0x08, 1][..], &put(3, b"http")].concat();
    both_ways("v1", "Service", &port(&text), want(json!("http")));
    both_ways("v1", "Service", &port(&[0x08, 0, 0x10, 81]), want(json!(81)));
    let gone = put(2, &put(3, &[0x08, 0, 0x10, 0]));
    let want = json!({"spec": {"maxUnavailable": 0}});
    both_ways("policy/v1", "PodDisruptionBudget", &gone, want);
}

#[test]
fn inlined_structs_stand_in_their_parent() {
    let empty_dir = [put(1, b"v"), put(2, &put(2, b""))].concat();
    let want = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    both_ways("v1", "Pod", &put(2, &put(1, &empty_dir)), want);
}

#[test]
fn negative_numbers_take_ten_bytes() {
    let minus_one = [0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let want = json!({"spec": {"leaseDurationSeconds": -1}});
    both_ways("coordination.k8s.io/v1", "Lease", &put(2, &minus_one), want);
}

#[test]
fn what_is_not_set_is_left_out_and_a_zero_that_is_set_is_kept() {
    // name "x", generateName "", generation 0, a creation time of no bytes.
    let metadata = [put(1, b"x"), put(2, b""), vec![0x38, 0], put(8, b"")].concat();
    let deployment = [put(1, &metadata), put(2, &[0x08, 0, 0x28, 0])].concat();
    let read = decode(&enveloped("apps/v1", "Deployment", &deployment)).unwrap();
    assert_eq!(read["metadata"], json!({"name": "x"}));
    assert_eq!(read["spec"], json!({"replicas": 0}), "a pointer; minReadySeconds is none");
}

#[test]
fn unknown_fields_of_every_wire_type_are_skipped() {
    let number = [0xf8, 0x06, 7];
    let fixed = [&[0xf9, 0x06][..], &[1; 8], &[0xfd, 0x06], &[1; 4]].concat();
    let bytes = [0xfa, 0x06, 2, 1, 2];
    let raw = [&number[..], &put(1, &put(1, b"x")), &fixed, &bytes].concat();
    let read = decode(&enveloped("v1", "ConfigMap", &raw)).unwrap();
    assert_eq!(read, json!({"metadata": {"name": "x"}, "apiVersion": "v1", "kind": "ConfigMap"}));
}

#[test]
fn numbers_may_come_packed() {
    let values = |list: &[u8]| {
        let codes = put(25, list);
        // Tag 25 takes two bytes.
        [&[0xca, 0x01][..], &codes[1..]].concat()
    };
    let rule = put(2, &[put(1, b"In"), put(2, &[1, 2])].concat());
    let pod = put(2, &put(2, &values(&rule)));
    let read = decode(&enveloped("v1", "Pod", &pod)).unwrap();
    let rules = &read["spec"]["containers"][0]["restartPolicyRules"];
    assert_eq!(rules[0]["exitCodes"]["values"], json!([1, 2]));
}

#[test]
fn what_cannot_be_read_is_said() {
    assert!(decode(b"{}").unwrap_err().contains("expected prefix"));
    let widget = decode(&enveloped("v1", "Widget", b"")).unwrap_err();
    assert_eq!(widget, "no kind \"Widget\" is registered for version \"v1\"");
    for raw in [&[0x0a, 9, 1][..], &[0x08], &[0x0b], &put(2, &put(1, b"\xff"))] {
        let broken = decode(&enveloped("v1", "ConfigMap", raw)).unwrap_err();
        assert_eq!(broken, "the protobuf message is damaged", "{raw:?}");
    }
}

#[test]
fn lists_are_their_metadata_and_their_objects() {
    let head = json!({"apiVersion": "v1", "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "7"}});
    let item = Arc::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a"}}));
    let raw = [put(1, &put(2, b"7")), put(2, &put(1, &put(1, b"a")))].concat();
    assert_eq!(encode_list(&head, &[item]).unwrap(), enveloped("v1", "ConfigMapList", &raw));
    assert_eq!(encode(&json!({"kind": "Info", "major": "1"})), None);
}
