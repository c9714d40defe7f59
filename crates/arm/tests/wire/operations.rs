//! Long-running operations, answer by answer.

use crate::{answer, broken, reply, request, unsent};
use arm::operation::{
    FIRST_POLL_MS, LONGEST_POLL_MS, LONGEST_RUN_MS, LONGEST_SILENT_MS, MAX_FAULTS,
};
use arm::{Answer, ErrorKind, Method, Operation, Reply, Step, Target, TransportFault};
use serde_json::{Value, json};

const OPERATION: &str = "https://arm/operations/1";
const RESULT: &str = "https://arm/operationResults/1";

fn with(status: u16, body: Value, operation: Option<&str>, location: Option<&str>) -> Answer {
    Answer::Reply(Box::new(Reply {
        async_operation: operation.map(str::to_owned),
        location: location.map(str::to_owned),
        ..reply(status, body)
    }))
}

fn state(state: &str) -> Value {
    json!({"id": "/r", "properties": {"provisioningState": state}})
}

/// What is done after each answer, in short words; the last word is the end.
fn run(method: Method, answers: &[Answer]) -> String {
    let mut operation = Operation::start(&request(method));
    let mut words = Vec::new();
    for answer in answers {
        words.push(match operation.advance(answer) {
            Step::Poll { request, after_ms } => {
                assert_eq!((request.method, request.body), (Method::Get, None));
                assert!(after_ms > 0);
                format!("poll {}", place(&request.target))
            }
            Step::ReadBack { request } => format!("read {}", place(&request.target)),
            Step::Done { body: Some(_) } => "done with body".to_owned(),
            Step::Done { body: None } => "done".to_owned(),
            Step::Failed(error) => format!("failed {:?} {}", error.kind, error.code),
        });
    }
    words.join(", ")
}

fn place(target: &Target) -> &str {
    match target {
        Target::Url(url) if url == OPERATION => "operation",
        Target::Url(url) if url == RESULT => "location",
        Target::Path(_) => "resource",
        Target::Url(other) => panic!("an unknown place: {other}"),
    }
}

#[test]
fn a_put_ends_with_its_resource() {
    let succeeded = || answer(200, json!({"status": "Succeeded"}));
    let running = || answer(200, json!({"status": "InProgress"}));
    let table = [
        (vec![with(200, state("Succeeded"), Some(OPERATION), None)], "done with body"),
        (vec![answer(200, state("Succeeded"))], "done with body"),
        (vec![answer(200, json!({"id": "/r"}))], "done with body"),
        (
            vec![answer(201, json!({"id": "/r"})), answer(200, json!({"id": "/r"}))],
            "poll resource, done with body",
        ),
        (
            vec![
                with(201, state("Updating"), Some(OPERATION), Some(RESULT)),
                running(),
                succeeded(),
                answer(200, state("Succeeded")),
            ],
            "poll operation, poll operation, read resource, done with body",
        ),
        (
            vec![
                answer(200, state("Updating")),
                answer(200, state("Updating")),
                answer(200, state("Succeeded")),
            ],
            "poll resource, poll resource, done with body",
        ),
        (
            vec![
                with(202, json!(null), None, Some(RESULT)),
                answer(202, json!(null)),
                answer(200, json!(null)),
                answer(200, state("Succeeded")),
            ],
            "poll location, poll location, read resource, done with body",
        ),
        (
            vec![
                with(201, state("Updating"), Some(OPERATION), None),
                answer(200, json!({"status": "Failed", "error": {"code": "Conflict"}})),
            ],
            "poll operation, failed Busy Conflict",
        ),
        (
            vec![
                with(201, state("Updating"), Some(OPERATION), None),
                answer(404, json!(null)),
                answer(200, state("Succeeded")),
            ],
            "poll operation, poll resource, done with body",
        ),
        (
            vec![
                with(201, state("Updating"), Some(OPERATION), None),
                succeeded(),
                answer(200, state("Updating")),
                answer(200, state("Failed")),
            ],
            "poll operation, read resource, poll resource, failed Transient ProvisioningFailed",
        ),
        (
            vec![answer(412, json!({"error": {"code": "PreconditionFailed"}}))],
            "failed Stale PreconditionFailed",
        ),
        (vec![broken()], "failed Ambiguous NoAnswer"),
        (vec![unsent()], "failed Unreachable NotSent"),
    ];
    for (answers, want) in table {
        assert_eq!(run(Method::Put, &answers), want, "{answers:?}");
    }
}

#[test]
fn a_delete_does_not_end_with_a_subscription_that_is_not_seen() {
    let unseen = || answer(404, json!({"error": {"code": "SubscriptionNotFound"}}));
    let table = [
        (vec![unseen()], "failed Forbidden SubscriptionNotFound"),
        (
            vec![with(202, json!(null), None, Some(RESULT)), unseen(), unseen()],
            "poll location, poll resource, failed Forbidden SubscriptionNotFound",
        ),
        (
            vec![answer(202, json!(null)), unseen()],
            "poll resource, failed Forbidden SubscriptionNotFound",
        ),
    ];
    for (answers, want) in table {
        assert_eq!(run(Method::Delete, &answers), want, "{answers:?}");
    }
}

#[test]
fn a_delete_ends_with_nothing() {
    let table = [
        (vec![answer(200, json!(null))], "done"),
        (vec![answer(204, json!(null))], "done"),
        (vec![answer(404, json!(null))], "done"),
        (
            vec![
                with(202, json!(null), None, Some(RESULT)),
                answer(202, json!(null)),
                answer(204, json!(null)),
            ],
            "poll location, poll location, done",
        ),
        (
            vec![
                with(202, json!(null), Some(OPERATION), Some(RESULT)),
                answer(200, json!({"status": "Succeeded"})),
            ],
            "poll operation, done",
        ),
        (
            vec![
                with(202, json!(null), None, Some(RESULT)),
                answer(400, json!({"error": {"code": "PublicIPAddressCannotBeDeleted"}})),
            ],
            "poll location, failed Refused PublicIPAddressCannotBeDeleted",
        ),
        (
            vec![
                answer(202, json!(null)),
                answer(200, state("Deleting")),
                answer(404, json!(null)),
            ],
            "poll resource, poll resource, done",
        ),
        (
            vec![
                with(202, json!(null), Some(OPERATION), None),
                answer(404, json!(null)),
                answer(404, json!(null)),
            ],
            "poll operation, poll resource, done",
        ),
    ];
    for (answers, want) in table {
        assert_eq!(run(Method::Delete, &answers), want, "{answers:?}");
    }
}

#[test]
fn an_action_is_done_at_once_unless_it_says_otherwise() {
    let failed = json!({"status": "Failed", "error": {"code": "InternalServerError"}});
    let table = [
        (vec![with(200, json!({}), Some(OPERATION), Some(RESULT))], "done with body"),
        (vec![answer(200, json!(null))], "done"),
        (vec![answer(204, json!(null))], "done"),
        (
            vec![answer(200, json!({"error": {"code": "DuplicateLocationsInRequest"}}))],
            "failed Refused DuplicateLocationsInRequest",
        ),
        (
            vec![with(202, json!(null), None, Some(RESULT)), answer(200, failed)],
            "poll location, failed Transient InternalServerError",
        ),
        (
            vec![
                with(202, json!(null), None, Some(RESULT)),
                answer(200, json!({"status": "InProgress"})),
                answer(200, json!({"status": "Succeeded"})),
            ],
            "poll location, poll location, done",
        ),
        (vec![answer(202, json!(null))], "failed Ambiguous OperationLost"),
        (vec![answer(400, json!({"error": {"code": "X"}}))], "failed Refused X"),
    ];
    for (answers, want) in table {
        assert_eq!(run(Method::Post, &answers), want, "{answers:?}");
    }
}

#[test]
fn a_poll_that_says_nothing_is_repeated_until_it_is_too_many() {
    let mut operation = Operation::start(&request(Method::Put));
    operation.advance(&with(201, state("Updating"), Some(OPERATION), None));
    for round in 0..MAX_FAULTS {
        let nothing = match round % 3 {
            0 => answer(503, json!(null)),
            1 => answer(429, json!(null)),
            _ => broken(),
        };
        let step = operation.advance(&nothing);
        assert!(matches!(step, Step::Poll { after_ms: LONGEST_POLL_MS, .. }), "{step:?}");
    }
    let mut lucky = operation.clone();
    lucky.advance(&answer(200, json!({"status": "InProgress"})));
    assert!(matches!(lucky.advance(&broken()), Step::Poll { .. }), "the count starts anew");
    let step = operation.advance(&broken());
    assert!(matches!(step, Step::Failed(e) if e.kind == ErrorKind::Ambiguous));
}

/// A token goes to ARM's own address only: no poll of another one will ever be sent.
#[test]
fn an_operation_at_a_foreign_address_is_lost_at_once() {
    let mut operation = Operation::start(&request(Method::Put));
    operation.advance(&with(201, state("Updating"), Some("https://elsewhere/op"), None));
    let why = "refused to follow https://elsewhere/op: only addresses of https://arm are followed";
    let foreign = Answer::Fault(TransportFault::Foreign(why.to_owned()));
    let Step::Failed(error) = operation.advance(&foreign) else { panic!("it is polled further") };
    assert_eq!(error.kind, ErrorKind::Ambiguous);
    assert!(error.message.contains(why), "{error}");
}

#[test]
fn a_success_that_cannot_be_read_back_is_one() {
    let mut operation = Operation::start(&request(Method::Put));
    operation.advance(&with(201, state("Updating"), Some(OPERATION), None));
    operation.advance(&answer(200, json!({"status": "Succeeded"})));
    for _ in 0..MAX_FAULTS {
        operation.advance(&answer(500, json!(null)));
    }
    assert_eq!(operation.advance(&broken()), Step::Done { body: None });
}

#[test]
fn waits_grow_and_what_azure_asks_for_is_granted() {
    let mut operation = Operation::start(&request(Method::Put));
    let mut waits = Vec::new();
    let mut next = with(201, state("Updating"), Some(OPERATION), None);
    for _ in 0..5 {
        match operation.advance(&next) {
            Step::Poll { after_ms, .. } => waits.push(after_ms),
            other => panic!("{other:?}"),
        }
        next = answer(200, json!({"status": "InProgress"}));
    }
    assert_eq!(waits, [FIRST_POLL_MS, 2_000, 4_000, LONGEST_POLL_MS, LONGEST_POLL_MS]);
    let mut asked = reply(200, json!({"status": "InProgress"}));
    asked.retry_after_ms = Some(30_000);
    let step = operation.advance(&Answer::Reply(Box::new(asked)));
    assert!(matches!(step, Step::Poll { after_ms: 30_000, .. }));
}

#[test]
fn an_operation_without_end_ends() {
    let mut operation = Operation::start(&request(Method::Put));
    operation.advance(&with(201, state("Updating"), Some(OPERATION), None));
    let running = answer(200, json!({"status": "InProgress"}));
    // The first poll was asked for before; the last one may end a poll's wait too late.
    let waited = FIRST_POLL_MS + waits_until_lost(&mut operation, &running);
    assert!((LONGEST_RUN_MS..LONGEST_RUN_MS + LONGEST_POLL_MS).contains(&waited), "{waited}");
}

#[test]
fn a_resource_that_stays_updating_without_an_operation_is_given_up_sooner() {
    let mut operation = Operation::start(&request(Method::Put));
    let updating = with(200, state("Updating"), None, None);
    operation.advance(&updating);
    let waited = FIRST_POLL_MS + waits_until_lost(&mut operation, &updating);
    let range = LONGEST_SILENT_MS..LONGEST_SILENT_MS + LONGEST_POLL_MS;
    assert!(range.contains(&waited), "{waited}");
}

#[test]
fn an_answer_that_asks_for_no_wait_is_no_reason_to_poll_without_end() {
    let at_once = |answer: Answer| match answer {
        Answer::Reply(reply) => {
            Answer::Reply(Box::new(Reply { retry_after_ms: Some(0), ..*reply }))
        }
        fault @ Answer::Fault(_) => fault,
    };
    let accepted = at_once(with(202, Value::Null, Some(OPERATION), None));
    let running = at_once(answer(200, json!({"status": "InProgress"})));
    let busy = at_once(answer(503, Value::Null));
    let mut operation = Operation::start(&request(Method::Put));
    let waits =
        [accepted, running.clone(), busy, running].map(|answer| match operation.advance(&answer) {
            Step::Poll { after_ms, .. } => after_ms,
            other => panic!("{other:?}"),
        });
    assert_eq!(waits, [FIRST_POLL_MS, 2_000, LONGEST_POLL_MS, 4_000]);
}

/// The same answer until the operation is given up; the time it waited between polls.
fn waits_until_lost(operation: &mut Operation, answer: &Answer) -> u64 {
    let mut waited = 0;
    loop {
        match operation.advance(answer) {
            Step::Poll { after_ms, .. } => waited += after_ms,
            Step::Failed(e) => {
                assert_eq!(e.kind, ErrorKind::Ambiguous);
                return waited;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_success_that_names_an_error_is_a_failure() {
    let failed = |method: Method, reply: Reply| match Operation::start(&request(method))
        .advance(&Answer::Reply(Box::new(reply)))
    {
        Step::Failed(error) => error.code,
        step => format!("{step:?}"),
    };
    let nested = reply(200, json!({"error": {"code": "Nested", "message": "m"}}));
    assert_eq!(failed(Method::Post, nested), "Nested");
    let plain = reply(200, json!({"code": "Plain", "message": "m"}));
    assert_eq!(failed(Method::Post, plain), "Plain");
    for body in [json!(null), json!({})] {
        let header = Reply { error_code: Some("Header".to_owned()), ..reply(200, body) };
        assert_eq!(failed(Method::Post, header), "Header");
    }
    let resource = reply(200, json!({"id": "/r", "code": "no error", "properties": {}}));
    let step = Operation::start(&request(Method::Get)).advance(&Answer::Reply(Box::new(resource)));
    assert!(matches!(step, Step::Done { .. }), "{step:?}");
}
