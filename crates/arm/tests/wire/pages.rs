//! Lists in pages.

use crate::{answer, broken, request};
use arm::{Answer, ErrorKind, Item, JsonItem, Method, Page, PageStep, Pages, Reply, Target};
use serde_json::{Value, json};
use std::sync::Arc;

fn parsed(item: Value) -> Item {
    Item::Parsed(Arc::new(item))
}

fn next(step: PageStep) -> Target {
    match step {
        PageStep::Next { request, .. } => {
            assert_eq!((request.method, request.correlation.as_str()), (Method::Get, "c"));
            request.target
        }
        other => panic!("no next page: {other:?}"),
    }
}

#[test]
fn links_are_followed_whole_or_below_the_endpoint() {
    let mut pages = Pages::start(&request(Method::Get));
    let step = pages.advance(answer(200, json!({"value": [1], "nextLink": "https://a/b?c"})));
    assert_eq!(next(step), Target::Url("https://a/b?c".to_owned()));
    let step = pages.advance(answer(200, json!({"value": null, "nextLink": "/d?e"})));
    assert_eq!(next(step), Target::Path("/d?e".to_owned()));
    let step = pages.advance(answer(200, json!({"value": [2, 3], "nextLink": ""})));
    assert_eq!(step, PageStep::Done(vec![parsed(json!(2)), parsed(json!(3))]));
}

#[test]
fn one_resource_is_a_list_of_one() {
    let mut pages = Pages::start(&request(Method::Get));
    let step = pages.advance(answer(200, json!({"id": "x"})));
    assert_eq!(step, PageStep::Done(vec![parsed(json!({"id": "x"}))]));
}

#[test]
fn a_page_that_fails_fails_the_list() {
    let kind = |answer| match Pages::start(&request(Method::Get)).advance(answer) {
        PageStep::Failed(error) => error.kind,
        other => panic!("did not fail: {other:?}"),
    };
    assert_eq!(kind(answer(404, json!(null))), ErrorKind::Missing);
    assert_eq!(kind(answer(200, json!(null))), ErrorKind::Transient);
    assert_eq!(kind(broken()), ErrorKind::Transient);
}

#[test]
fn a_later_page_that_is_missing_is_no_empty_list() {
    let group = json!({"error": {"code": "ResourceGroupNotFound", "message": "m"}});
    for missing in [json!(null), group] {
        let mut pages = Pages::start(&request(Method::Get));
        let step = pages.advance(answer(200, json!({"value": [1], "nextLink": "/more"})));
        assert_eq!(next(step), Target::Path("/more".to_owned()));
        match pages.advance(answer(404, missing.clone())) {
            PageStep::Failed(error) => {
                assert_eq!((error.kind, error.status), (ErrorKind::Transient, 404), "{missing}");
            }
            other => panic!("did not fail: {other:?}"),
        }
    }
}

#[test]
fn a_list_without_end_ends() {
    let mut pages = Pages::start(&request(Method::Get));
    let page = answer(200, json!({"value": [], "nextLink": "/again"}));
    let last = (0..3_000)
        .map(|_| pages.advance(page.clone()))
        .find(|s| !matches!(s, PageStep::Next { .. }));
    assert!(matches!(last, Some(PageStep::Failed(e)) if e.code == "EndlessList"));
}

#[test]
fn items_that_are_texts_are_parsed_when_they_are_looked_at() {
    let text = r#"{"value":[{"id":"x"}],"nextLink":"/more"}"#.to_owned();
    let item = 10..20;
    assert_eq!(&text[item.clone()], r#"{"id":"x"}"#);
    let items = vec![Item::Text(text.into(), item)];
    let page = Page { items, next: Some("/more".to_owned()) };
    let reply = Reply { status: 200, page: Some(page), ..Reply::default() };
    let step = Pages::start(&request(Method::Get)).advance(Answer::Reply(Box::new(reply)));
    let PageStep::Next { items, request } = step else { panic!("it goes on: {step:?}") };
    assert_eq!(request.target, Target::Path("/more".to_owned()));
    assert_eq!(
        items.iter().map(|i| i.json().into_owned()).collect::<Vec<_>>(),
        [json!({"id": "x"})]
    );
}

/// A later read compares pointers to see that the value has not changed.
#[test]
fn one_resource_is_handed_on_without_a_copy() {
    let body = Arc::new(json!({"id": "x"}));
    let reply = Reply { status: 200, body: Some(Arc::clone(&body)), ..Reply::default() };
    let step = Pages::start(&request(Method::Get)).advance(Answer::Reply(Box::new(reply)));
    let PageStep::Done(items) = step else { panic!("{step:?}") };
    let [Item::Parsed(item)] = items.as_slice() else { panic!("{items:?}") };
    assert!(Arc::ptr_eq(item, &body));
}
