use super::*;
use crate::fake::{Act, Fake, Seen, Then, json};
use crate::kubernetes::{ConnectFrom, SourceSettings, connect, sources};
use model::Group;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn object(name: &str, revision: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": revision, "labels": {"r": revision}}})
}

fn line(change: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": change, "object": object}))
}

fn page(revision: &str, next: &str, items: &[Value]) -> Act {
    json(200, &json!({"metadata": {"resourceVersion": revision, "continue": next}, "items": items}))
}

fn field<'a>(seen: &'a Seen, name: &str) -> &'a str {
    let (_, query) = seen.path.split_once('?').unwrap_or_default();
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or("")
}

/// A fact in one word.
fn word(event: Event) -> String {
    match event {
        Event::Kubernetes(KubernetesFact::ListBegin(_)) => "begin".into(),
        Event::Kubernetes(KubernetesFact::ListEnd(..)) => "end".into(),
        Event::Kubernetes(KubernetesFact::Namespace(name, labels)) => {
            format!("{name}@{}", labels.get("r").map_or("", AsRef::as_ref))
        }
        Event::Kubernetes(KubernetesFact::NamespaceGone(name)) => format!("-{name}"),
        other => panic!("{other:?}"),
    }
}

/// Watches namespaces at a scripted server until so many events have come.
async fn watch(
    count: usize,
    script: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
) -> (Vec<String>, Vec<Seen>) {
    watch_for(SILENCE, count, script).await
}

/// With so much patience for a silent server.
async fn watch_for(
    silence: Duration,
    count: usize,
    script: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
) -> (Vec<String>, Vec<Seen>) {
    let fake = Fake::start(script).await;
    let words = words(&fake, namespaces(), (silence, 4), count).await;
    (words, fake.seen())
}

fn namespaces() -> Source {
    let settings = SourceSettings { classes: BTreeSet::new(), group: Group::new("rg") };
    sources(&[Kind::Namespaces], &settings).remove(0)
}

/// The first words of a watch, with so much patience and so much room for events.
async fn words<F: Told<Event = Event> + Send + 'static>(
    fake: &Fake,
    source: Source<F>,
    (silence, room): (Duration, usize),
    count: usize,
) -> Vec<String> {
    let client = connect(&ConnectFrom::Address(fake.url.clone()), "t").await.unwrap();
    let (sender, mut receiver) = mpsc::channel(room);
    let stop = CancellationToken::new();
    let mut watch = Watch::new(client, source, sender, Pace { first_ms: 1, cap_ms: 5 });
    watch.silence = silence;
    let task = tokio::spawn(watch.run(stop.clone()));
    let mut words = Vec::new();
    while words.len() < count {
        words.push(word(receiver.recv().await.expect("the watch goes on")));
    }
    stop.cancel();
    task.await.unwrap();
    words
}

#[tokio::test]
async fn a_list_comes_in_pages_and_the_watch_goes_on_from_it() {
    let (words, seen) = watch(6, |seen, _| match (field(seen, "watch"), field(seen, "continue")) {
        ("", "") => page("7", "p2", &[object("a", "1")]),
        ("", _) => page("7", "", &[object("b", "2")]),
        _ => Act::Stream(
            vec![line("ADDED", &object("c", "8")), line("DELETED", &object("a", "9"))],
            Then::Hang,
        ),
    })
    .await;
    assert_eq!(words, ["begin", "a@1", "b@2", "end", "c@8", "-a"]);
    assert_eq!(seen.len(), 3);
    assert_eq!(field(&seen[0], "limit"), "500");
    assert_eq!(field(&seen[1], "continue"), "p2");
    assert_eq!(field(&seen[2], "resourceVersion"), "7");
    assert_eq!(field(&seen[2], "allowWatchBookmarks"), "true");
}

#[tokio::test]
async fn after_a_cut_it_goes_on_from_the_last_bookmark_without_listing() {
    let (words, seen) = watch(4, |_, before| match before {
        0 => page("1", "", &[]),
        1 => {
            let first = line("ADDED", &object("a", "2"));
            let (left, right) = first.split_at(20);
            let pieces = [left, right, &line("BOOKMARK", &object("", "30")), "{\"type\":\"ADD"];
            Act::Stream(pieces.map(String::from).to_vec(), Then::Cut)
        }
        2 => Act::Drop,
        3 => Act::Stream(vec![], Then::Close),
        _ => Act::Stream(vec![line("MODIFIED", &object("a", "31"))], Then::Hang),
    })
    .await;
    assert_eq!(words, ["begin", "end", "a@2", "a@31"]);
    let revisions: Vec<&str> = seen[1..].iter().map(|s| field(s, "resourceVersion")).collect();
    assert_eq!(revisions, ["1", "30", "30", "30"]);
}

/// A server whose machine is gone does not close its connections.
#[tokio::test]
async fn a_watch_that_falls_silent_is_opened_anew_where_it_was() {
    let (words, seen) = watch_for(Duration::from_millis(50), 4, |_, before| match before {
        0 => page("1", "", &[]),
        1 => Act::Stream(vec![line("ADDED", &object("a", "2"))], Then::Hang),
        2 => Act::Stream(vec![], Then::Hang),
        _ => Act::Stream(vec![line("ADDED", &object("b", "3"))], Then::Hang),
    })
    .await;
    assert_eq!(words, ["begin", "end", "a@2", "b@3"]);
    let revisions: Vec<&str> = seen[1..4].iter().map(|s| field(s, "resourceVersion")).collect();
    assert_eq!(revisions, ["1", "2", "2"]);
}

#[tokio::test]
async fn a_forgotten_revision_makes_a_new_list() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let (words, seen) = watch(8, move |_, before| match before {
        0 => page("1", "", &[object("a", "1")]),
        1 => Act::Stream(vec![line("ERROR", &gone)], Then::Close),
        2 => page("50", "", &[object("b", "40")]),
        3 => json(410, &gone),
        4 => page("60", "", &[]),
        _ => Act::Stream(vec![], Then::Hang),
    })
    .await;
    assert_eq!(words, ["begin", "a@1", "end", "begin", "b@40", "end", "begin", "end"]);
    let watched: Vec<&str> = seen
        .iter()
        .filter(|s| field(s, "watch") == "true")
        .map(|s| field(s, "resourceVersion"))
        .collect();
    assert_eq!(watched[..2], ["1", "50"]);
}

/// The API server cannot decode an object that another version of it has stored (500), or a
/// revision is none to it (400): from the same revision the same comes again.
#[tokio::test]
async fn a_watch_that_a_status_ends_is_listed_anew_and_one_that_has_to_wait_goes_on() {
    let status = |code: u16| json!({"kind": "Status", "code": code, "message": "on order"});
    let ended = move |code| Act::Stream(vec![line("ERROR", &status(code))], Then::Close);
    let odd = r#"{"type":"ODD","object":{}}"#;
    let (words, seen) = watch(10, move |_, before| match before {
        0 => page("1", "", &[]),
        1 => ended(500),
        2 => page("20", "", &[]),
        3 => json(400, &status(400)),
        4 => page("30", "", &[]),
        5 => Act::Stream(vec![format!("{odd}\n")], Then::Close),
        6 => page("40", "", &[]),
        7 => ended(429),
        8 => json(429, &status(429)),
        9 => Act::Stream(vec![line("ADDED", &object("a", "41"))], Then::Close),
        _ => Act::Stream(vec![line("ADDED", &object("b", "42"))], Then::Hang),
    })
    .await;
    let lists = ["begin", "end"].repeat(4);
    assert_eq!(words, [lists, vec!["a@41", "b@42"]].concat());
    let revisions: Vec<&str> = seen.iter().map(|s| field(s, "resourceVersion")).collect();
    assert_eq!(revisions[..11], ["", "1", "", "20", "", "30", "", "40", "40", "40", "41"]);
}

#[tokio::test]
async fn a_list_that_breaks_off_is_begun_anew() {
    let (words, seen) = watch(5, |_, before| match before {
        0 => json(503, &json!({"message": "starting"})),
        1 => page("1", "p2", &[object("a", "1")]),
        2 => json(410, &json!({"message": "the continue token is too old"})),
        3 => page("2", "", &[object("a", "1")]),
        _ => Act::Hang,
    })
    .await;
    assert_eq!(words, ["begin", "a@1", "begin", "a@1", "end"]);
    assert_eq!(field(&seen[3], "continue"), "");
}

#[tokio::test]
async fn one_odd_object_does_not_stop_the_others() {
    let odd = json!({"metadata": {"name": 7, "resourceVersion": "3"}});
    let (words, _) = watch(4, move |_, before| match before {
        0 => page("1", "", &[odd.clone(), object("a", "2")]),
        _ => Act::Stream(vec![line("ADDED", &odd), line("ADDED", &object("b", "4"))], Then::Hang),
    })
    .await;
    assert_eq!(words, ["begin", "a@2", "end", "b@4"]);
}

/// A fact of those of whom there is one on each node.
struct OfNode(KubernetesFact);

impl Told for OfNode {
    type Event = Event;
    type Kind = Kind;

    fn begin(kind: Kind) -> Self {
        Self(KubernetesFact::ListBegin(kind))
    }

    fn end(kind: Kind, revision: &str) -> Self {
        Self(KubernetesFact::ListEnd(kind, Some(revision.into())))
    }

    fn event(self) -> Event {
        Event::Kubernetes(self.0)
    }

    fn list(_kind: Kind) -> Listing {
        Listing::Cached
    }
}

/// Watches what there is one of on each node until so many events have come.
async fn watch_of_node(
    count: usize,
    script: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
) -> (Vec<String>, Vec<Seen>) {
    let fake = Fake::start(script).await;
    let Source { kind, path, selector, fields, read } = namespaces();
    let read: Read<OfNode> = Arc::new(move |change, json| read(change, json).map(OfNode));
    let source = Source { kind, path, selector, fields, read };
    let words = words(&fake, source, (SILENCE, 1), count).await;
    (words, fake.seen())
}

#[tokio::test]
async fn a_list_in_one_piece_is_told_object_by_object_and_begun_anew_where_it_breaks_off() {
    let list = json!({"kind": "NamespaceList", "metadata": {"resourceVersion": "7"},
        "items": [object("a", "1"), {"metadata": {"name": 7}}, object("b", "2")]});
    let text = list.to_string();
    let (half, _) = text.split_at(text.find("\"b\"").unwrap());
    let half = half.to_owned();
    let (words, seen) = watch_of_node(7, move |seen, before| match before {
        0 => json(503, &json!({"message": "starting"})),
        1 => Act::Stream(vec![half.clone()], Then::Close),
        2 => json(200, &json!({})),
        3 => {
            let pieces = text.as_bytes().chunks(9).map(|piece| std::str::from_utf8(piece).unwrap());
            Act::Stream(pieces.map(String::from).collect(), Then::Close)
        }
        _ if field(seen, "resourceVersion") == "7" => Act::Hang,
        _ => Act::Drop,
    })
    .await;
    assert_eq!(words, ["begin", "a@1", "begin", "begin", "a@1", "b@2", "end"]);
    assert_eq!((field(&seen[3], "resourceVersion"), field(&seen[3], "limit")), ("0", ""));
}

/// Kubernetes does so only where it is asked to, what stands before it may not: an end in between
/// would say that all other Pods are gone.
#[tokio::test]
async fn a_list_in_one_piece_that_goes_on_is_read_to_its_end() {
    let (words, seen) = watch_of_node(4, |seen, _| match field(seen, "continue") {
        _ if field(seen, "watch") == "true" => {
            Act::Stream(vec![line("ADDED", &object("c", "8"))], Then::Hang)
        }
        "" => page("7", "p2", &[object("a", "1")]),
        _ => page("7", "", &[object("b", "2")]),
    })
    .await;
    assert_eq!(words, ["begin", "a@1", "b@2", "end"]);
    assert_eq!((field(&seen[0], "resourceVersion"), field(&seen[1], "continue")), ("0", "p2"));
}
