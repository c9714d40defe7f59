use super::limit::limits_of_path;
use super::*;
use arm::{Method, Target};

const PIP: &str = "/subscriptions/S/resourceGroups/rg/providers/Microsoft.Network/\
                   publicIPAddresses/p";

fn request(method: Method, path: &str) -> Request {
    let target = Target::Path(format!("{path}?api-version=1"));
    Request {
        method,
        target,
        condition: arm::Condition::None,
        body: None,
        correlation: String::new(),
    }
}

fn reply(status: u16) -> Reply {
    Reply { status, ..Reply::default() }
}

fn left(scope: &str, count: u64) -> (String, u64) {
    (format!("x-ms-ratelimit-remaining-{scope}"), count)
}

fn throttled(code: &str, retry_after_ms: Option<u64>) -> Reply {
    let body = serde_json::json!({"error": {"code": code, "message": "too many"}});
    Reply { status: 429, retry_after_ms, body: Some(body.into()), ..Reply::default() }
}

/// A budget with a clock and calls that are numbered.
struct Desk {
    budget: Budget,
    now_ms: u64,
    calls: u64,
}

impl Desk {
    fn new() -> Self {
        Self { budget: Budget::new(Limits::Published), now_ms: 1_000_000, calls: 0 }
    }

    fn ask(&mut self, method: Method, urgency: Urgency) -> Result<(), Refusal> {
        self.budget.ask(&limits_of_path(method, PIP), urgency, self.now_ms)
    }

    fn send(&mut self, method: Method) -> CallId {
        self.calls += 1;
        self.budget.take(CallId(self.calls), &request(method, PIP), self.now_ms);
        CallId(self.calls)
    }

    fn answer(&mut self, call: CallId, reply: Reply) {
        self.budget.answered(call, &Answer::Reply(Box::new(reply)), self.now_ms);
    }

    /// Sends and is answered at once, as long as it may; the number of calls.
    fn drain(&mut self, method: Method) -> u64 {
        let mut sent = 0;
        while self.ask(method, Urgency::Urgent).is_ok() {
            let call = self.send(method);
            self.answer(call, reply(200));
            sent += 1;
        }
        sent
    }

    fn level(&self, kind: LimitKind) -> Level {
        let mut levels = self.budget.levels(self.now_ms);
        levels.find(|l| l.limit.kind == kind).expect("the limit was met")
    }
}

fn kinds(method: Method, path: &str) -> Vec<LimitKind> {
    limits_of_path(method, path).into_iter().map(|l| l.kind).collect()
}

#[test]
fn before_the_first_answer_a_few_calls_are_under_way() {
    let mut desk = Desk::new();
    let calls: Vec<CallId> = (0..20)
        .map_while(|_| {
            desk.ask(Method::Put, Urgency::Urgent).ok()?;
            Some(desk.send(Method::Put))
        })
        .collect();
    assert_eq!(calls.len(), 10);
    // One that nobody answered says nothing of what is left.
    let lost = Answer::Fault(TransportFault::Ambiguous("reset".into()));
    desk.budget.answered(calls[0], &lost, desk.now_ms);
    let eleventh = desk.send(Method::Put);
    assert!(desk.ask(Method::Put, Urgency::Urgent).is_err());
    // The process before left thirty: nine of them are on the way.
    let known = Reply { remaining: vec![left("subscription-writes", 29)], ..reply(200) };
    let reply = Answer::Reply(Box::new(known));
    assert!(desk.budget.answered(eleventh, &reply, desk.now_ms), "others wait to see that");
    assert_eq!(desk.drain(Method::Put), 20);
}

#[test]
fn every_request_names_its_limits() {
    use LimitKind::*;
    assert_eq!(kinds(Method::Put, PIP), [Writes, NetworkWrites]);
    assert_eq!(kinds(Method::Post, PIP), [Writes, NetworkWrites]);
    assert_eq!(kinds(Method::Delete, PIP), [Deletes, NetworkWrites]);
    assert_eq!(kinds(Method::Get, PIP), [Reads, NetworkReads]);
    let vm = "/subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/v";
    assert_eq!(kinds(Method::Put, vm), [Writes, ComputeWrites]);
    let provider = "/subscriptions/S/providers/Microsoft.Compute?api-version=1";
    assert_eq!(kinds(Method::Get, provider), [Reads]);
    assert_eq!(kinds(Method::Get, "/tenants"), []);
    let poll = Target::Url(
        "https://arm/subscriptions/S/providers/Microsoft.Network/locations/x/operations/1?a=b"
            .into(),
    );
    let poll = Request { target: poll, ..request(Method::Get, PIP) };
    let limits = limits_of(&poll);
    assert_eq!(limits.iter().map(|l| l.kind).collect::<Vec<_>>(), [Reads, NetworkReads]);
    assert_eq!(&*limits[0].subscription, "s", "subscriptions are compared without regard to case");
}

#[test]
fn the_published_write_limits_are_used_to_the_full_and_not_exceeded() {
    let mut desk = Desk::new();
    let mut sent = desk.drain(Method::Put);
    assert_eq!(sent, 200, "a full bucket at once");
    let refusal = desk.ask(Method::Put, Urgency::Urgent).unwrap_err();
    assert_eq!(refusal.limit.kind, LimitKind::Writes);
    assert_eq!(refusal.ready_ms, desk.now_ms + 100, "a token comes back each tenth of a second");
    for _ in 0..80 {
        desk.now_ms += 1_000;
        sent += desk.drain(Method::Put);
    }
    assert_eq!(sent, 1_000, "the network provider takes a thousand in five minutes");
    let refusal = desk.ask(Method::Put, Urgency::Urgent).unwrap_err();
    assert_eq!(refusal.limit.kind, LimitKind::NetworkWrites);
    assert_eq!(refusal.ready_ms, 1_000_000 + 300_000, "when the first calls are five minutes old");
    desk.now_ms = refusal.ready_ms;
    assert_eq!(desk.drain(Method::Put), 200);
}

#[test]
fn deletes_and_writes_share_the_network_providers_limit_only() {
    let mut desk = Desk::new();
    assert_eq!((desk.drain(Method::Put), desk.drain(Method::Delete)), (200, 200));
    assert_eq!(desk.level(LimitKind::NetworkWrites).left, 600);
}

#[test]
fn the_turn_of_a_call_far_down_the_line_is_told() {
    let mut desk = Desk::new();
    desk.drain(Method::Put);
    let limits = limits_of_path(Method::Put, PIP);
    let mut turn =
        |calls| desk.budget.ready_ms(&limits, calls, Urgency::Urgent, desk.now_ms) - desk.now_ms;
    assert_eq!((turn(1), turn(100)), (100, 10_000));
    assert_eq!(turn(900), 300_000, "800 more fit into this span");
    assert_eq!(turn(2_000), 600_000);
}

#[test]
fn less_urgent_calls_leave_some_for_others() {
    let mut desk = Desk::new();
    while desk.ask(Method::Get, Urgency::Background).is_ok() {
        let call = desk.send(Method::Get);
        desk.answer(call, reply(200));
    }
    assert_eq!(desk.level(LimitKind::Reads).left, 50);
    while desk.ask(Method::Get, Urgency::Normal).is_ok() {
        let call = desk.send(Method::Get);
        desk.answer(call, reply(200));
    }
    assert_eq!(desk.level(LimitKind::Reads).left, 5);
    assert_eq!(desk.drain(Method::Get), 5);
}

#[test]
fn a_new_process_believes_what_it_hears_is_left() {
    let mut desk = Desk::new();
    let first = desk.send(Method::Put);
    assert!(desk.ask(Method::Put, Urgency::Urgent).is_ok(), "nothing has been said yet");
    let remaining = vec![left("subscription-writes", 7)];
    desk.answer(first, Reply { remaining, ..reply(201) });
    assert_eq!(desk.level(LimitKind::Writes).left, 7, "the process before has used the rest");
    assert!(desk.ask(Method::Delete, Urgency::Urgent).is_ok(), "deletes have their own limit");
}

#[test]
fn calls_that_azure_need_not_have_counted_are_taken_off_what_it_says() {
    let mut desk = Desk::new();
    let first = desk.send(Method::Get);
    let second = desk.send(Method::Get);
    let third = desk.send(Method::Get);
    let says = |count| Reply { remaining: vec![left("subscription-reads", count)], ..reply(200) };
    desk.answer(second, says(100));
    assert_eq!(desk.level(LimitKind::Reads).left, 98, "one was sent before, one after");
    desk.answer(third, says(100));
    assert_eq!(desk.level(LimitKind::Reads).left, 99);
    desk.answer(first, says(103));
    assert_eq!(desk.level(LimitKind::Reads).left, 101, "an old answer knows nothing of the others");
}

#[test]
fn a_larger_limit_than_the_published_one_is_believed() {
    let mut desk = Desk::new();
    let call = desk.send(Method::Put);
    let remaining = vec![left("subscription-writes", 11_999)];
    desk.answer(call, Reply { remaining, ..reply(200) });
    assert_eq!(desk.level(LimitKind::Writes).left, 11_999);
}

#[test]
fn limits_of_others_only_ever_take_away() {
    let mut desk = Desk::new();
    let call = desk.send(Method::Put);
    let remaining = vec![left("subscription-global-writes", 2_900), left("tenant-writes", 12)];
    desk.answer(call, Reply { remaining, ..reply(200) });
    assert_eq!(desk.level(LimitKind::Writes).left, 12);
    let vm = "/subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/v";
    desk.budget.take(CallId(9), &request(Method::Put, vm), desk.now_ms);
    let remaining = vec![
        ("microsoft.compute/putvm3min".to_owned(), 44),
        ("microsoft.compute/putvm30min".to_owned(), 404),
    ];
    desk.answer(CallId(9), Reply { remaining, ..reply(200) });
    assert_eq!(desk.level(LimitKind::ComputeWrites).left, 44);
}

#[test]
fn a_refusal_closes_its_limit_for_the_time_asked_and_no_other() {
    let mut desk = Desk::new();
    desk.drain(Method::Put);
    desk.now_ms += 5_000;
    let call = desk.send(Method::Put);
    desk.answer(call, throttled("TooManyRequests", Some(17_000)));
    let refusal = desk.ask(Method::Put, Urgency::Urgent).unwrap_err();
    let network = LimitKind::NetworkWrites;
    assert_eq!((refusal.limit.kind, refusal.ready_ms), (network, desk.now_ms + 17_000));
    assert_eq!(desk.level(network).throttled, 1);
    assert_eq!(desk.level(LimitKind::Writes).throttled, 0);
    let refused = desk.ask(Method::Delete, Urgency::Urgent).unwrap_err();
    assert_eq!(refused.limit.kind, network, "deletes count against the same limit");
    assert!(desk.ask(Method::Get, Urgency::Background).is_ok());
    desk.now_ms += 16_999;
    assert!(desk.ask(Method::Put, Urgency::Urgent).is_err());
}

#[test]
fn after_a_refusal_one_call_tries_and_then_all_go() {
    let mut desk = Desk::new();
    desk.drain(Method::Put);
    desk.now_ms += 5_000;
    let call = desk.send(Method::Put);
    desk.answer(call, throttled("TooManyRequests", Some(10_000)));
    desk.now_ms += 10_000;
    assert!(desk.ask(Method::Put, Urgency::Normal).is_ok());
    let trial = desk.send(Method::Put);
    assert!(desk.ask(Method::Put, Urgency::Urgent).is_err(), "one at a time");
    desk.answer(trial, reply(200));
    assert_eq!(desk.level(LimitKind::NetworkWrites).share_percent, 20, "200 had gone through");
    assert_eq!(desk.drain(Method::Put), 148, "what has come back meanwhile, less two");
}

/// As many writes as go through in a minute where Azure takes so many in five, twenty at a time;
/// (passed, refused).
fn write_for_a_minute(desk: &mut Desk, azure: u64) -> (u64, u64) {
    let (mut passed, mut refused) = (0, 0);
    for _ in 0..240 {
        desk.now_ms += 250;
        let mut calls = Vec::new();
        while calls.len() < 20 && desk.ask(Method::Put, Urgency::Normal).is_ok() {
            calls.push(desk.send(Method::Put));
        }
        for call in calls {
            if passed < azure {
                passed += 1;
                desk.answer(call, reply(200));
            } else {
                refused += 1;
                desk.answer(call, throttled("TooManyRequests", Some(240_000)));
            }
        }
    }
    (passed, refused)
}

/// So many refusals that a sixteenth of the published limit is believed in.
fn after_a_storm() -> Desk {
    let mut desk = Desk::new();
    for _ in 0..8 {
        let call = desk.send(Method::Put);
        desk.answer(call, throttled("TooManyRequests", Some(1_000)));
        desk.now_ms += 1_000;
    }
    assert_eq!(desk.level(LimitKind::NetworkWrites).share_percent, 6);
    desk
}

#[test]
fn a_limit_that_is_whole_again_is_learnt_within_seconds() {
    let mut desk = after_a_storm();
    desk.now_ms += 60_000;
    let (passed, refused) = write_for_a_minute(&mut desk, u64::MAX);
    assert_eq!(refused, 0);
    // The 200 of Resource Manager's bucket and the ten a second that come back.
    assert!((700..=800).contains(&passed), "{passed}");
    assert!(desk.level(LimitKind::NetworkWrites).share_percent >= 70);
}

#[test]
fn a_limit_that_stays_small_refuses_no_more_calls_than_were_gained() {
    let mut desk = after_a_storm();
    desk.now_ms += 60_000;
    let (passed, refused) = write_for_a_minute(&mut desk, 70);
    assert_eq!((passed, refused), (70, 7), "62 were believed, then 1, 2, 4 and 8 more");
    assert_eq!(desk.level(LimitKind::NetworkWrites).share_percent, 7);
    // Once it is known, one a span is enough to see that it is so still.
    desk.now_ms += 240_000;
    assert_eq!(write_for_a_minute(&mut desk, 70), (70, 1));
}

#[test]
fn refusals_that_belong_together_count_once_and_the_share_grows_back() {
    let mut desk = Desk::new();
    let calls: Vec<CallId> = (0..5).map(|_| desk.send(Method::Get)).collect();
    for call in calls {
        desk.answer(call, throttled("SubscriptionRequestsThrottled", None));
    }
    let level = desk.level(LimitKind::Reads);
    assert_eq!((level.share_percent, level.throttled), (75, 5));
    assert_eq!(level.closed_until_ms, desk.now_ms + 1_000, "without a word, a second");
    desk.now_ms += 1_000;
    let call = desk.send(Method::Get);
    desk.answer(call, throttled("SubscriptionRequestsThrottled", None));
    let level = desk.level(LimitKind::Reads);
    assert_eq!(level.closed_until_ms, desk.now_ms + 2_000, "again: twice as long");
    assert_eq!(level.share_percent, 56);
    for _ in 0..9 {
        desk.now_ms += 10_000;
        desk.drain(Method::Get);
    }
    assert_eq!(desk.level(LimitKind::Reads).share_percent, 100);
}

#[test]
fn what_a_stranger_takes_shows_in_the_measured_refill() {
    let mut desk = Desk::new();
    let call = desk.send(Method::Put);
    desk.answer(call, Reply { remaining: vec![left("subscription-writes", 20)], ..reply(200) });
    // Azure's own bucket: ten a second come, a stranger takes six of them.
    let mut azure = 20_000_u64;
    let mut sent = 0;
    let mut refused = 0;
    for tick in 0..1_200_u64 {
        desk.now_ms += 100;
        azure += 1_000;
        if tick % 5 < 3 {
            azure = azure.saturating_sub(1_000);
        }
        while desk.ask(Method::Put, Urgency::Urgent).is_ok() {
            let call = desk.send(Method::Put);
            if azure < 1_000 {
                refused += 1;
                desk.answer(call, throttled("SubscriptionRequestsThrottled", Some(1_000)));
                continue;
            }
            azure -= 1_000;
            sent += 1;
            let remaining = vec![left("subscription-writes", azure / 1_000)];
            desk.answer(call, Reply { remaining, ..reply(200) });
        }
    }
    assert!((450..=500).contains(&sent), "{sent} of 480 and the 20 that were there");
    assert!(refused * 100 < sent, "{refused} refused of {sent}");
    let share = desk.level(LimitKind::Writes).share_percent;
    assert!((30..=55).contains(&share), "{share} % of the refill are ours");
}

#[test]
fn a_call_that_did_not_leave_costs_nothing() {
    let mut desk = Desk::new();
    let call = desk.send(Method::Get);
    let fault = Answer::Fault(TransportFault::NotSent("no connection".into()));
    desk.budget.answered(call, &fault, desk.now_ms);
    assert_eq!(desk.level(LimitKind::Reads).left, 250);
    assert_eq!(desk.level(LimitKind::NetworkReads).left, 10_000);
    let call = desk.send(Method::Get);
    let fault = Answer::Fault(TransportFault::Ambiguous("it broke".into()));
    desk.budget.answered(call, &fault, desk.now_ms);
    assert_eq!(desk.level(LimitKind::Reads).left, 249, "it may have arrived");
}

#[test]
fn a_busy_resources_429_is_no_matter_of_budget() {
    let mut desk = Desk::new();
    let call = desk.send(Method::Get);
    desk.answer(call, throttled("RetryableErrorDueToAnotherOperation", Some(10_000)));
    let level = desk.level(LimitKind::Reads);
    assert_eq!((level.closed_until_ms, level.throttled, level.share_percent), (0, 0, 100));
}

#[test]
fn where_no_limit_is_known_none_is_assumed_but_azure_is_heard() {
    let mut desk = Desk::new();
    desk.budget = Budget::new(Limits::Unknown);
    for _ in 0..5_000 {
        assert!(desk.ask(Method::Put, Urgency::Normal).is_ok());
        desk.send(Method::Put);
    }
    let call = desk.send(Method::Put);
    desk.answer(call, throttled("TooManyRequests", Some(3_000)));
    let refusal = desk.ask(Method::Put, Urgency::Urgent).unwrap_err();
    assert_eq!(refusal.ready_ms, desk.now_ms + 3_000);
}
