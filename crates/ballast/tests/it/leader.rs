//! Several real processes and one Lease. What is judged is what the emulators recorded: each
//! state of the Lease with the times that stand in it, and who wrote to Azure in which order. The
//! exact bounds are those of `election.rs`, where time stands still.

use crate::support::{Emulators, Process, http, http_text, run, wait_for};
use edge::lease::LeaseSettings;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/ballast";
/// The times that are in force where nobody asks for others.
const DEFAULT: [&str; 0] = [];
/// What is promised of a successor, for its whole way from the release to its first write.
const SUCCESSOR_MS: i128 = 3_000;
const SHORT: [&str; 3] = [
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=500ms",
];

fn start(emulators: &Emulators, times: &[&str]) -> (Process, String) {
    let mut words = emulators.words(&["run", "--leader-elect", "--port=0"]);
    words.push("--leader-elect-resource-namespace=default".to_owned());
    words.extend(times.iter().map(ToString::to_string));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut process = Process::start_logging(&words);
    let pages = process.address();
    (process, pages)
}

fn leader(pages: &str) -> Option<Value> {
    let (code, status) = http(pages, "GET", "/status", None);
    (code == 200).then(|| status["leader"].clone()).filter(Value::is_object)
}

/// Its name, when it leads.
fn leads(pages: &str) -> String {
    wait_for("a leader", || {
        let leader = leader(pages)?;
        let named = leader["holder"].as_str().map(str::to_owned);
        named.filter(|_| leader["thisProcess"] == true)
    })
}

/// A process that leads and has served Service `one`, its pages and its name.
fn leading(emulators: &Emulators, times: &[&str]) -> (Process, String, String) {
    emulators.create_service("one");
    let (process, pages) = start(emulators, times);
    let name = leads(&pages);
    emulators.address_of("one");
    (process, pages, name)
}

/// Waits until it sees that this one leads.
fn sees(pages: &str, holder: &str) {
    wait_for("sight of the leader", || (leader(pages)?["holder"] == holder).then_some(()));
}

/// A state of the Lease.
#[derive(Clone, Debug)]
struct State {
    holder: String,
    renewed: Timestamp,
    acquired: Timestamp,
    transitions: u64,
    lasts: Duration,
}

/// Every state of the Lease, as the API server's watch tells them.
fn states(emulators: &Emulators) -> Vec<State> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases\
                ?watch=1&resourceVersion=1&timeoutSeconds=1";
    let (code, text) = http_text(&emulators.kube, "GET", path, None);
    assert_eq!(code, 200, "{text}");
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let objects = events.filter(|event| event["object"]["kind"] == "Lease");
    let state = |event: Value| {
        let spec = &event["object"]["spec"];
        let time = |name: &str| spec[name].as_str().unwrap().parse().unwrap();
        State {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            renewed: time("renewTime"),
            acquired: time("acquireTime"),
            transitions: spec["leaseTransitions"].as_u64().unwrap(),
            lasts: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap()),
        }
    };
    objects.map(state).collect()
}

/// Holders in their order; nobody is the empty name. Each hand-over is looked at: a lease that was
/// not given back has run out, and is counted.
fn holders(states: &[State]) -> Vec<String> {
    let mut order = vec![states[0].holder.clone()];
    for pair in states.windows(2) {
        let [old, new] = pair else { unreachable!("windows of two") };
        if old.holder == new.holder {
            assert_eq!((old.acquired, old.transitions), (new.acquired, new.transitions));
            continue;
        }
        order.push(new.holder.clone());
        if new.holder.is_empty() {
            assert_eq!(new.transitions, old.transitions);
            continue;
        }
        assert_eq!(new.transitions, old.transitions + 1, "{old:?} {new:?}");
        assert_eq!(new.acquired, new.renewed);
        assert!(new.acquired >= old.renewed);
        if !old.holder.is_empty() {
            assert!(new.acquired >= old.renewed + old.lasts, "too early: {old:?} {new:?}");
        }
    }
    order
}

/// How long the lease was without a holder that is alive before each one who took it over: from the
/// release or the last renewal to the claim, by the times in the Lease.
fn gaps_ms(states: &[State]) -> Vec<i128> {
    let taken = states.windows(2).filter(|pair| {
        let [old, new] = pair else { return false };
        old.holder != new.holder && !new.holder.is_empty()
    });
    taken.map(|pair| pair[1].acquired.duration_since(pair[0].renewed).as_millis()).collect()
}

/// Azure's own clock, in milliseconds, at a call that is made now.
fn azure_ms(emulators: &Emulators) -> i128 {
    http(&emulators.azure, "GET", "/subscriptions/now/resourceGroups/now", None);
    emulators.azure_calls().last().unwrap()["t_ms"].as_i64().unwrap().into()
}

/// When Azure had the first write since then, by its own clock.
fn first_write_ms(emulators: &Emulators, since_ms: i128) -> i128 {
    let calls = emulators.azure_calls();
    let writes = calls.iter().filter(|call| call["method"] != "GET");
    let times = writes.map(|call| i128::from(call["t_ms"].as_i64().unwrap()));
    times.filter(|at_ms| *at_ms >= since_ms).min().expect("a write")
}

/// Who wrote to Azure, in turns. Processes are told apart by how their calls' ids begin.
fn writers(emulators: &Emulators) -> Vec<String> {
    let mut turns: Vec<String> = Vec::new();
    for call in emulators.azure_calls().iter().filter(|call| call["method"] != "GET") {
        let id = call["correlation"].as_str().unwrap();
        let writer = id.split('-').next().unwrap().to_owned();
        if turns.last() != Some(&writer) {
            turns.push(writer);
        }
    }
    turns
}

/// Nobody wrote again after another had written.
fn assert_turns(emulators: &Emulators, wanted: usize) {
    let turns = writers(emulators);
    let mut names = turns.clone();
    names.sort();
    names.dedup();
    assert_eq!((turns.len(), names.len()), (wanted, wanted), "{turns:?}");
}

#[test]
fn a_lease_that_is_given_back_is_taken_by_the_one_that_stands_by() {
    let emulators = Emulators::start();
    let (first, first_pages, first_name) = leading(&emulators, &DEFAULT);
    let (second, second_pages) = start(&emulators, &DEFAULT);
    sees(&second_pages, &first_name);

    let server = format!("http://{second_pages}");
    let (code, text, err) = run(&["status", "--server", &server]);
    assert_eq!(code, 0, "{err}");
    let line = text.lines().next().unwrap().to_owned();
    let shown = leader(&second_pages).unwrap();
    let second_name = shown["identity"].as_str().unwrap().to_owned();
    assert_eq!(
        line,
        format!("Leader: {first_name}; this process, {second_name}, stands by"),
        "{text}"
    );
    assert_eq!(
        shown,
        json!({"thisProcess": false, "holder": first_name, "identity": second_name,
            "lease": "default/ballast"})
    );
    let (_, text, _) = run(&["status", "--server", &format!("http://{first_pages}")]);
    assert!(text.starts_with(&format!("Leader: this process, {first_name}\n")), "{text}");
    let (_, text, _) = run(&["status", "-o", "json", "--server", &server]);
    let printed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(printed["leader"], shown);
    // It has read everything and could take over: that is what ready means.
    wait_for("a standby that is ready", || {
        (http_text(&second_pages, "GET", "/readyz", None) == (200, "ok\n".into())).then_some(())
    });
    let metric = |pages: &str| http_text(pages, "GET", "/metrics", None).1;
    assert!(metric(&first_pages).contains("\nballast_leader 1"));
    assert!(metric(&second_pages).contains("\nballast_leader 0"));
    for pages in [&first_pages, &second_pages] {
        let page = http_text(pages, "GET", "/", None).1;
        assert!(page.contains("<p class=\"leader\">Leader: ") && page.contains(&first_name));
    }

    assert_eq!(first.terminate(), 0);
    let ended_ms = azure_ms(&emulators);
    emulators.create_service("two");
    assert_eq!(leads(&second_pages), second_name);
    emulators.address_of("two");
    assert_eq!(second.terminate(), 0);
    let states = states(&emulators);
    let nobody = String::new();
    assert_eq!(holders(&states), [first_name, nobody.clone(), second_name, nobody]);
    assert_turns(&emulators, 2);
    let gaps = gaps_ms(&states);
    assert!(gaps.len() == 1 && gaps[0] <= SUCCESSOR_MS, "{gaps:?} ms");
    let wrote_ms = first_write_ms(&emulators, ended_ms) - ended_ms;
    assert!(wrote_ms <= SUCCESSOR_MS, "the first write came after {wrote_ms} ms");
}

#[test]
fn a_lease_of_one_that_was_killed_runs_out_first() {
    let emulators = Emulators::start();
    let (first, _, first_name) = leading(&emulators, &DEFAULT);
    let (second, second_pages) = start(&emulators, &DEFAULT);
    sees(&second_pages, &first_name);
    first.kill();
    emulators.create_service("two");
    let second_name = leads(&second_pages);
    emulators.address_of("two");
    assert_eq!(second.terminate(), 0);
    let states = states(&emulators);
    assert_eq!(holders(&states), [first_name, second_name, String::new()]);
    assert_turns(&emulators, 2);
    let settings = LeaseSettings::default();
    // The bound with calls that take no time, and as much on top as a successor has for calls.
    let calls_ms = SUCCESSOR_MS - i128::from(settings.longest_vacancy_ms());
    let gaps = gaps_ms(&states);
    let most_ms = i128::from(settings.longest_silence_ms()) + calls_ms;
    assert!(gaps.len() == 1 && gaps[0] <= most_ms, "{gaps:?} ms");
}

/// It wakes, believes for a moment that it leads, and has to find out before it writes.
#[test]
fn a_leader_that_stood_still_finds_out_before_it_writes() {
    let emulators = Emulators::start();
    let (first, first_pages, first_name) = leading(&emulators, &SHORT);
    let (second, second_pages) = start(&emulators, &SHORT);
    sees(&second_pages, &first_name);
    first.freeze();
    emulators.create_service("two");
    let second_name = leads(&second_pages);
    emulators.address_of("two");
    first.thaw();
    // What comes now is news to both.
    emulators.serve("three");
    sees(&first_pages, &second_name);
    let object = http(&emulators.kube, "GET", LEASE, None).1;
    assert_eq!(object["spec"]["holderIdentity"], json!(second_name));
    assert_eq!(first.terminate(), 0);
    assert_eq!(second.terminate(), 0);
    assert_eq!(holders(&states(&emulators)), [first_name, second_name, String::new()]);
    assert_turns(&emulators, 2);
}

/// The simulator's proofs are about the times that are in force where nobody asks for others.
#[test]
fn the_simulated_lease_has_the_times_of_the_real_one() {
    let LeaseSettings { lease_ms, renew_deadline_ms, retry_ms, .. } = LeaseSettings::default();
    let simulated = (sim::process::LEASE_MS, sim::process::RENEW_MS, sim::process::RETRY_MS);
    assert_eq!((lease_ms, renew_deadline_ms, retry_ms), simulated);
}
