//! Spans made of notices.
//!
//! A change of a Service is a trace: its first span lasts from the change until the Service is
//! programmed, refused or gone, and each write on its account is a span below it. A write for
//! several changes is a span in the trace of the first, with links to the others.

use control::{Notice, NoticeKind};
use model::ServiceName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Spans that may be open: one whose end is never told is given up after as many others.
const OPEN: usize = 10_000;
/// Other changes that a span links to.
const LINKS: usize = 100;

/// A span, in the JSON of OTLP.
pub type Span = Value;

/// A change that is followed.
#[derive(Debug)]
struct OpenChange {
    since_ms: u64,
    service: ServiceName,
}

/// A write under way.
#[derive(Debug)]
struct OpenCall {
    since_ms: u64,
    text: String,
    changes: Vec<Arc<str>>,
}

/// What has begun and not ended.
#[derive(Debug, Default)]
pub struct Spans {
    changes: BTreeMap<Arc<str>, OpenChange>,
    latest: BTreeMap<ServiceName, Arc<str>>,
    calls: BTreeMap<String, OpenCall>,
}

/// How a span ended.
#[derive(Clone, Copy, Debug)]
enum End<'a> {
    Good,
    Bad(&'a str),
}

impl Spans {
    /// Takes in a notice, and gives the spans that end with it.
    pub fn take(&mut self, notice: &Notice) -> Vec<Span> {
        match notice.kind {
            NoticeKind::Asked => self.begin_change(notice),
            NoticeKind::Sent => {
                self.begin_call(notice);
                Vec::new()
            }
            NoticeKind::Answered => self.end_call(notice, End::Good).into_iter().collect(),
            NoticeKind::Failed => {
                self.end_call(notice, End::Bad(&notice.text)).into_iter().collect()
            }
            NoticeKind::Programmed => self.end_changes(notice, End::Good),
            NoticeKind::Refused => self.end_changes(notice, End::Bad(&notice.text)),
            NoticeKind::Planned | NoticeKind::Noted | NoticeKind::Drifted => Vec::new(),
        }
    }

    fn begin_change(&mut self, notice: &Notice) -> Vec<Span> {
        let mut ended = Vec::new();
        for (id, service) in notice.changes.iter().zip(&notice.services) {
            if let Some(before) = self.latest.insert(service.clone(), Arc::clone(id)) {
                let end = End::Bad("changed again before it was programmed");
                ended.extend(self.end_change(&before, notice.at_ms, end));
            }
            let change = OpenChange { since_ms: notice.at_ms, service: service.clone() };
            self.changes.insert(Arc::clone(id), change);
        }
        while self.changes.len() > OPEN
            && let Some((id, OpenChange { service, .. })) = self.changes.pop_first()
        {
            self.forget_latest(&service, &id);
        }
        ended
    }

    fn begin_call(&mut self, notice: &Notice) {
        let Some(correlation) = &notice.correlation else { return };
        let call = OpenCall {
            since_ms: notice.at_ms,
            text: notice.text.clone(),
            changes: notice.changes.clone(),
        };
        self.calls.insert(correlation.clone(), call);
        if self.calls.len() > OPEN {
            self.calls.pop_first();
        }
    }

    fn end_changes(&mut self, notice: &Notice, end: End<'_>) -> Vec<Span> {
        let ended = notice.changes.iter();
        ended.filter_map(|id| self.end_change(id, notice.at_ms, end)).collect()
    }

    fn end_change(&mut self, id: &Arc<str>, at_ms: u64, end: End<'_>) -> Option<Span> {
        let OpenChange { since_ms, service } = self.changes.remove(id)?;
        self.forget_latest(&service, id);
        let mut span = span(&trace_of(id), &change_span(id), (since_ms, at_ms), end);
        span["name"] = json!("change of a Service");
        span["kind"] = json!(INTERNAL);
        span["attributes"] = json!([
            text("k8s.namespace.name", &service.namespace),
            text("k8s.service.name", &service.name),
        ]);
        Some(span)
    }

    /// A change is followed no longer: it is not the latest of its Service either.
    fn forget_latest(&mut self, service: &ServiceName, id: &Arc<str>) {
        if self.latest.get(service).is_some_and(|latest| latest == id) {
            self.latest.remove(service);
        }
    }

    fn end_call(&mut self, notice: &Notice, end: End<'_>) -> Option<Span> {
        let correlation = notice.correlation.as_ref()?;
        let OpenCall { since_ms, text: sent, changes } = self.calls.remove(correlation)?;
        let trace = trace_of(changes.first().map_or(correlation.as_str(), |id| id));
        let mut span = span(&trace, &call_span(correlation), (since_ms, notice.at_ms), end);
        let (method, target) = sent.split_once(' ').unwrap_or((&sent, ""));
        span["name"] = json!(method);
        span["kind"] = json!(CLIENT);
        if let Some(first) = changes.first() {
            span["parentSpanId"] = json!(change_span(first));
        }
        let link = |id: &Arc<str>| json!({ "traceId": trace_of(id), "spanId": change_span(id) });
        span["links"] = changes.iter().skip(1).take(LINKS).map(link).collect();
        span["attributes"] = json!([
            text("http.request.method", method),
            text("ballast.target", target),
            text("azure.correlation_request_id", correlation),
        ]);
        Some(span)
    }
}

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const ERROR: u8 = 2;

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn hex(id: &str) -> String {
    id.chars().filter(char::is_ascii_hexdigit).collect()
}

/// An id is a UUID: 32 hexadecimal digits without its dashes.
fn trace_of(id: &str) -> String {
    format!("{:0>32}", hex(id))
}

/// The end of an id is the number of the change.
fn change_span(id: &str) -> String {
    span_id(id, '1')
}

fn call_span(correlation: &str) -> String {
    span_id(correlation, '2')
}

fn span_id(id: &str, mark: char) -> String {
    let digits = hex(id);
    let number = &digits[digits.len().saturating_sub(12)..];
    format!("{mark}{number:0>15}")
}

fn span(trace: &str, id: &str, (from_ms, to_ms): (u64, u64), end: End<'_>) -> Value {
    let status = match end {
        End::Good => json!({}),
        End::Bad(why) => json!({ "code": ERROR, "message": why }),
    };
    let nano = |ms: u64| (u128::from(ms) * 1_000_000).to_string();
    json!({
        "traceId": trace,
        "spanId": id,
        "startTimeUnixNano": nano(from_ms),
        "endTimeUnixNano": nano(to_ms.max(from_ms)),
        "status": status,
    })
}

/// The body of one export.
#[must_use]
pub fn body(spans: &[Span], instance: &str) -> Value {
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            text("service.name", "ballast"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", instance),
        ] },
        "scopeSpans": [{ "scope": { "name": "ballast" }, "spans": spans }],
    }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGE: &str = "feedf00d-0001-4000-8000-000000000001";
    const OTHER: &str = "feedf00d-0001-4000-8000-000000000002";
    const CALL: &str = "feedf00d-0000-4000-8000-000000000009";

    fn notice(kind: NoticeKind, at_ms: u64, text: &str, changes: &[&str]) -> Notice {
        let named =
            |id: &&str| ServiceName::new("default", if *id == CHANGE { "web" } else { "api" });
        Notice {
            at_ms,
            kind,
            services: changes.iter().map(named).collect(),
            text: text.to_owned(),
            changes: changes.iter().map(|id| Arc::from(*id)).collect(),
            correlation: None,
        }
    }

    fn call(kind: NoticeKind, at_ms: u64, text: &str) -> Notice {
        let correlation = Some(CALL.to_owned());
        Notice { correlation, ..notice(kind, at_ms, text, &[CHANGE, OTHER]) }
    }

    #[test]
    fn a_change_is_a_trace_and_its_write_a_span_below() {
        let mut spans = Spans::default();
        assert!(spans.take(&notice(NoticeKind::Asked, 10, "asks", &[CHANGE])).is_empty());
        assert!(spans.take(&notice(NoticeKind::Asked, 11, "asks", &[OTHER])).is_empty());
        assert!(spans.take(&call(NoticeKind::Sent, 12, "PUT loadBalancers/k")).is_empty());
        let ended = spans.take(&call(NoticeKind::Answered, 20, "done"));
        let wanted = json!([{
            "traceId": "feedf00d000140008000000000000001",
            "spanId": "2000000000000009",
            "parentSpanId": "1000000000000001",
            "startTimeUnixNano": "12000000",
            "endTimeUnixNano": "20000000",
            "status": {},
            "name": "PUT",
            "kind": 3,
            "links": [{
                "traceId": "feedf00d000140008000000000000002", "spanId": "1000000000000002",
            }],
            "attributes": [
                text("http.request.method", "PUT"),
                text("ballast.target", "loadBalancers/k"),
                text("azure.correlation_request_id", CALL),
            ],
        }]);
        assert_eq!(Value::from(ended), wanted);
        assert!(spans.take(&notice(NoticeKind::Noted, 29, "noted", &[CHANGE])).is_empty());
        let ended = spans.take(&notice(NoticeKind::Programmed, 30, "programmed", &[CHANGE]));
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0]["spanId"], "1000000000000001");
        assert_eq!(ended[0]["endTimeUnixNano"], "30000000");
        assert_eq!(ended[0]["attributes"][1], text("k8s.service.name", "web"));
        let again = spans.take(&notice(NoticeKind::Programmed, 31, "programmed", &[CHANGE]));
        assert!(again.is_empty(), "a span ends once");
    }

    #[test]
    fn failures_are_errors_and_a_new_change_ends_the_one_before() {
        let mut spans = Spans::default();
        spans.take(&call(NoticeKind::Sent, 1, "DELETE publicIPAddresses/p"));
        let ended = spans.take(&call(NoticeKind::Failed, 2, "it failed"));
        assert_eq!(ended[0]["status"], json!({ "code": 2, "message": "it failed" }));
        spans.take(&notice(NoticeKind::Asked, 3, "asks", &[CHANGE]));
        let mut next = notice(NoticeKind::Asked, 4, "was changed", &[OTHER]);
        next.services = vec![ServiceName::new("default", "web")];
        let ended = spans.take(&next);
        assert_eq!(ended[0]["spanId"], "1000000000000001");
        assert_eq!(ended[0]["status"]["code"], 2);
    }

    #[test]
    fn what_is_followed_has_an_end() {
        let mut spans = Spans::default();
        for n in 0..2 * OPEN {
            let id = format!("feedf00d-0001-4000-8000-{n:012x}");
            let mut asked = notice(NoticeKind::Asked, 1, "asks", &[&id]);
            asked.services = vec![ServiceName::new("default", format!("web-{n}"))];
            spans.take(&asked);
        }
        assert_eq!((spans.changes.len(), spans.latest.len()), (OPEN, OPEN));
    }

    /// `OTLP_BODY=FILE` writes it down, for a reader that has the published schema.
    #[test]
    fn a_request_holds_all_that_ended() {
        let mut spans = Spans::default();
        let story = [
            notice(NoticeKind::Asked, 10, "asks", &[CHANGE]),
            notice(NoticeKind::Asked, 11, "asks", &[OTHER]),
            call(NoticeKind::Sent, 12, "PUT loadBalancers/k"),
            call(NoticeKind::Failed, 20, "it failed"),
            call(NoticeKind::Sent, 21, "PUT loadBalancers/k"),
            call(NoticeKind::Answered, 30, "done"),
            notice(NoticeKind::Programmed, 31, "programmed", &[CHANGE]),
            notice(NoticeKind::Refused, 32, "refused", &[OTHER]),
        ];
        let ended: Vec<Span> = story.iter().flat_map(|notice| spans.take(notice)).collect();
        let names: Vec<&str> = ended.iter().filter_map(|span| span["name"].as_str()).collect();
        assert_eq!(names, ["PUT", "PUT", "change of a Service", "change of a Service"]);
        if let Some(file) = std::env::var_os("OTLP_BODY") {
            std::fs::write(file, body(&ended, "feedf00d").to_string()).expect("it can be written");
        }
    }
}
