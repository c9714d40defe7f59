//! The doors at the sockets: answers of the API server, of ARM and of token endpoints, and the
//! files that people name on the command line. As in `doors.rs` a door takes any bytes.
//!
//! `fuzz/targets` opens them to .ci/fuzz, `crates/ballast/tests/it/outside_bytes.rs` to
//! `cargo test`.

use arm::{Answer, JsonItem, PageStep, Pages};
use ballast::{cloud_config, estate, located, manifest};
use bytes::Bytes;
use edge::cloud::Endpoints;
use edge::credential::certificate::Certificate;
use edge::credential::{cli, reply};
use edge::kubernetes::lines::Lines;
use edge::kubernetes::wire::{Frame, read_frame, read_page};
use edge::kubernetes::{Change, SourceSettings, sources};
use edge::lease::record::{Claim, Record, Sighting};
use edge::lease::rule::{Verdict, judge};
use edge::origin::Origin;
use edge::retry_after::retry_after_ms;
use edge::web::WebReply;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use model::Group;
use model::world::Kind;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Longest that any answer may ask us to wait: a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The secret of the documents in the corpus: nothing may tell it.
pub const TOKEN: &str = "hunter2-hunter2-hunter2";

/// An error has words, and says what it is about.
fn says(text: &str, about: &str) {
    assert!(text.contains(about), "an error without {about:?}: {text:?}");
}

/// The lines of a watch, which come in pieces of any length: they are cut at the line's ends and
/// nowhere else, and each is an event or refused. The objects go on to the readers of every kind.
pub fn watch_stream(bytes: &[u8]) {
    let Some((length, text)) = bytes.split_first() else { return };
    let pieces: Vec<std::io::Result<Bytes>> = text
        .chunks(usize::from(*length) + 1)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    let body = axum::body::Body::from_stream(futures_util::stream::iter(pieces));
    let mut lines = Lines::new(body);
    let mut wanted: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    // What comes after the last end is a line that was cut short.
    wanted.pop();
    for wanted in wanted {
        let Some(Ok(Some(line))) = lines.next().now_or_never() else { panic!("a line is missing") };
        assert_eq!(line, wanted);
        watch_line(&line);
    }
    assert_eq!(lines.next().now_or_never(), Some(Ok(None)));
}

fn watch_line(line: &[u8]) {
    let frame = match read_frame(line) {
        Ok(frame) => frame,
        Err(why) => return says(&why, "a line is no watch event: "),
    };
    assert_eq!(read_frame(line).as_ref(), Ok(&frame));
    if let Frame::Object { change, object, revision } = &frame {
        let word = if *change == Change::Gone { "DELETED" } else { "MODIFIED" };
        let again = format!(r#"{{"object":{object},"type":"{word}"}}"#);
        assert_eq!(read_frame(again.as_bytes()).as_ref(), Ok(&frame), "{again}");
        assert_ne!(revision.as_deref(), Some(""));
        read_object(object);
    }
}

/// Each kind's reader in production: a fact, the same each time, or a reason.
fn read_object(object: &str) {
    let settings = SourceSettings { classes: BTreeSet::new(), group: Group::new("rg") };
    for source in sources(&Kind::ALL, &settings) {
        for change in [Change::Present, Change::Gone] {
            let first = (source.read)(change, object);
            assert_eq!(first, (source.read)(change, object));
            if let Err(why) = first {
                assert!(!why.is_empty(), "{:?} refused without a reason", source.kind);
            }
        }
    }
}

/// A page of a list: it is what a reader of the whole text finds in it, or refused. What is no list
/// never passes for an empty one.
pub fn list_page(bytes: &[u8]) {
    let page = match read_page(bytes) {
        Ok(page) => page,
        Err(why) => return says(&why, "the page is no list: "),
    };
    assert!(!page.revision.is_empty());
    assert_ne!(page.next.as_deref(), Some(""));
    page.items.iter().for_each(|item| read_object(item));
    // Objects that nobody reads may hold what no reader would take.
    let Ok(whole) = serde_json::from_slice::<Value>(bytes) else { return };
    if !whole.is_object() {
        return;
    }
    assert_eq!(whole["metadata"]["resourceVersion"], page.revision.as_str());
    let items: Vec<Value> =
        page.items.iter().map(|item| serde_json::from_str(item).unwrap_or_default()).collect();
    assert_eq!(whole["items"].as_array().cloned().unwrap_or_default(), items);
}

/// A Lease: what is made of it is a Lease again, nobody takes it too early, and nothing in it that
/// is not ours is lost.
pub fn lease_record(bytes: &[u8]) {
    let body = serde_json::from_slice(bytes).ok();
    let Some(record) = body.and_then(Record::new) else { return };
    let (now_ms, lease_ms) = (1_700_000_000_000, 15_000);
    assert!(!record.is_new());
    let seen = Sighting::of(&record, None, now_ms);
    assert_eq!(Sighting::of(&record, Some(seen.clone()), now_ms + 5), seen);
    let verdict = judge(&record, &seen, "me", lease_ms, now_ms + lease_ms - 1);
    let is_free = matches!(record.holder(), "" | "me");
    assert_eq!(verdict == Verdict::Free, is_free, "{}", record.object());
    let claim = Claim { holder: "me", seconds: 15, now: "2023-11-14T22:13:20.123000Z" };
    let claimed = record.clone().claimed(&claim);
    assert_eq!(Record::new(claimed.object().clone()).as_ref(), Some(&claimed));
    assert_eq!(claimed.holder(), "me");
    assert_eq!(judge(&claimed, &seen, "me", lease_ms, now_ms), Verdict::Free);
    let released = claimed.released(claim.now);
    assert_eq!(Record::new(released.object().clone()).as_ref(), Some(&released));
    assert_eq!(released.holder(), "");
    let others = |record: &Record| {
        let mut object: Value = record.object().clone();
        for field in [
            "holderIdentity",
            "leaseDurationSeconds",
            "acquireTime",
            "renewTime",
            "leaseTransitions",
        ] {
            object["spec"].as_object_mut().map(|spec| spec.remove(field));
        }
        if object["spec"].as_object().is_none_or(serde_json::Map::is_empty) {
            object.as_object_mut().map(|object| object.remove("spec"));
        }
        object
    };
    let spec = record.object()["spec"].clone();
    if spec.is_object() || spec.is_null() {
        assert_eq!(others(&record), others(&released));
    }
}

/// What a token endpoint or the Azure CLI answers: a token whose secret nobody is told, or a
/// refusal in one line, without the secret that was sent.
pub fn token_reply(bytes: &[u8]) {
    let now_ms = 1_700_000_000_000;
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let read = body.as_ref().and_then(|body| reply::token(body, now_ms));
    for token in read.into_iter().chain(cli::token(bytes)) {
        let shown = format!("{token:?}");
        assert!(!shown.contains(TOKEN), "told: {shown}");
        assert!(!token.secret.expose().is_empty());
    }
    let refusal = reply::refusal(400, bytes, &[TOKEN]);
    says(&refusal.reason, "HTTP 400");
    let error = reply::refused("getting a token", "https://login.example", refusal);
    let shown = error.to_string();
    says(&shown, "https://login.example");
    assert!(!shown.contains(TOKEN), "told: {shown}");
    assert!(!shown.contains('\n') && shown.chars().count() < 2_000, "{shown}");
}

/// Lines of `name: value`, an empty line, and a body.
fn reply_of(bytes: &[u8]) -> (HeaderMap, &[u8]) {
    let end = bytes.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match end {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (bytes, &bytes[bytes.len()..]),
    };
    let mut headers = HeaderMap::new();
    // More than any server sends; a map of headers has an end, too.
    for line in head.split(|b| *b == b'\n').take(200) {
        let at = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (name, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value.trim_ascii()))
        {
            headers.append(name, value);
        }
    }
    (headers, body)
}

/// An answer of ARM as it comes from the wire: waits and limits in its headers are bounded, and a
/// page of a list that stays text has the items of one that is parsed.
pub fn arm_reply(bytes: &[u8]) {
    let (headers, body) = reply_of(bytes);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let wait = retry_after_ms(&headers, now);
    assert!(wait.is_none_or(|wait| wait <= DAY_MS), "{wait:?}");
    let whole: Option<Value> =
        serde_json::from_slice(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).ok();
    for status in [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let web = WebReply { status, headers: headers.clone(), body: Bytes::copy_from_slice(body) };
        let read = edge::arm::headers::reply(web, arm::Method::Get, now);
        assert_eq!((read.status, read.retry_after_ms), (status.as_u16(), wait));
        for (name, _) in &read.remaining {
            assert_eq!(name, &name.to_lowercase());
        }
        assert!(status == StatusCode::OK || read.page.is_none());
        let parsed = arm::Reply { body: whole.clone().map(Into::into), page: None, ..read.clone() };
        if read.page.is_none() {
            assert_eq!(read.body.as_deref(), whole.as_ref());
        }
        // Text may hold what a reader of the whole would not take.
        if whole.is_some() {
            assert_eq!(listed(read), listed(parsed));
        }
    }
}

/// The items of an answer, and where the list goes on.
fn listed(reply: arm::Reply) -> Result<(Vec<Value>, Option<String>), String> {
    let request = arm::Request {
        method: arm::Method::Get,
        target: arm::Target::Path("/subscriptions/s/list".to_owned()),
        condition: arm::Condition::None,
        body: None,
        correlation: "c".to_owned(),
    };
    let values =
        |items: Vec<arm::Item>| items.iter().map(|item| item.json().into_owned()).collect();
    match Pages::start(&request).advance(Answer::Reply(Box::new(reply))) {
        PageStep::Next { items, request } => {
            Ok((values(items), Some(format!("{:?}", request.target))))
        }
        PageStep::Done(items) => Ok((values(items), None)),
        PageStep::Failed(error) => Err(format!("{error:?}")),
    }
}

/// What an Azure Stack or a file says of a cloud's addresses: all of them, or a reason.
pub fn cloud_metadata(bytes: &[u8]) {
    let Ok(asked) = Origin::parse("resourceManagerEndpoint", "https://management.local") else {
        panic!("the sample's address is wrong")
    };
    match Endpoints::from_metadata(bytes, "AzureStackCloud", &asked) {
        Ok(found) => assert!(found.endpoint.starts_with("http"), "{found:?}"),
        Err(why) => assert!(!why.is_empty()),
    }
    match Endpoints::from_environment_file(&String::from_utf8_lossy(bytes)) {
        Ok(found) => assert!(found.endpoint.starts_with("http"), "{found:?}"),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}

/// A client certificate's file: key and certificate that belong together, or a reason without the
/// file's content.
pub fn certificate(bytes: &[u8]) {
    match Certificate::read(bytes, "password") {
        Ok(read) => assert!(read.chain().next().is_some_and(|own| !own.is_empty())),
        Err(why) => {
            let why = why.to_string();
            assert!(!why.is_empty() && why.len() < 500, "{why}");
        }
    }
}

/// Manifests: objects that read the same when they are written again, or an error that names the
/// file. A cluster is made of them, or an error names the one at fault.
pub fn manifests(bytes: &[u8]) {
    let path = Path::new("shop.yaml");
    let text = String::from_utf8_lossy(bytes).into_owned();
    let found = match manifest::parse(path, text.clone()) {
        Ok(found) => found,
        Err(failure) => return says(&failure.text, "shop.yaml"),
    };
    let placed = located::objects(&text);
    assert!(placed.is_empty() || placed.len() == found.len(), "places of other objects");
    for one in &found {
        let written = one.object.to_string();
        let again = manifest::parse(path, written.clone());
        let Ok(again) = again else { panic!("what was written cannot be read: {written}") };
        assert_eq!(again.len(), 1, "{written}");
        assert_eq!(again[0].object, one.object, "{written}");
    }
    let classes = BTreeSet::new();
    let refused = manifest::refused_by_server(&found);
    for (_, why) in &refused {
        assert!(!why.is_empty(), "refused without a reason");
    }
    if let Err(failure) = manifest::cluster(&found, super::doors::policy(), &classes) {
        says(&failure.text, "shop.yaml");
    }
}

/// A snapshot of Azure: a list of resources, each with its id, or an error that names the file.
pub fn snapshot(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match estate::parse_snapshot(Path::new("azure.json"), &text) {
        Ok(resources) => {
            assert!(resources.iter().all(|resource| resource["id"].is_string()));
            drop(estate::Estate::of(resources, super::doors::policy()));
        }
        Err(failure) => says(&failure.text, "azure.json"),
    }
}

/// A cloud config's file and the Secret that overrides it, with a line of `====` between: what
/// comes of both is what the Secret says, and what the file says beside it.
pub fn cloud_config_secret(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (file, secret) = text.split_once("\n====\n").unwrap_or((&text, "{}"));
    let merged = cloud_config::merge(file, secret);
    super::doors::cloud_config(merged.as_bytes());
    let whole = |text: &str| serde_json::from_str::<serde_json::Map<String, Value>>(text).ok();
    if let (Some(_), Some(over), Some(merged)) = (whole(file), whole(secret), whole(&merged)) {
        let folded = |key: &String| key.to_ascii_lowercase();
        let twice = over.keys().map(folded).collect::<BTreeSet<_>>().len() < over.len();
        for (key, value) in over.iter().filter(|_| !twice) {
            assert_eq!(merged.get(key), Some(value), "the Secret's {key} is lost");
        }
    }
}
