//! The status document as a table.

use crate::output::{Ink, Paint};
use crate::render::table::lay_out;
use crate::status::backends::BackendsStatus;
use crate::status::{DriftStatus, ServiceStatus, StatusDocument};
use edge::terminal::one_line;
use model::ProbeState;
use model::report::State;

/// Where the column of backends stands, where there is one.
const BACKENDS_COLUMN: usize = 5;
/// Backends in one state that a line names.
const NAMED: usize = 6;

/// The whole table.
#[must_use]
pub fn render(document: &StatusDocument, paint: Paint) -> String {
    let mut text = String::new();
    if let Some(leader) = &document.leader {
        text.push_str(&paint.ink(Ink::Dim, format!("{}\n", leader.line())));
    }
    for trouble in &document.troubles {
        let about = document.obstacles.iter().find(|obstacle| obstacle.cause == *trouble);
        let attempts = about.map(|obstacle| obstacle.attempts(document.now_ms));
        let held_up = match about.map_or(0, |obstacle| obstacle.services.len()) {
            0 => String::new(),
            1 => "; 1 Service is held up".to_owned(),
            n => format!("; {n} Services are held up"),
        };
        let line = format!("! {trouble}{}{held_up}\n", attempts.unwrap_or_default());
        text.push_str(&paint.ink(Ink::Red, line));
    }
    if let Some(why) = &document.backend_trouble {
        text.push_str(&paint.ink(Ink::Yellow, format!("! {why}\n")));
    }
    if !document.draining.is_empty() {
        text.push_str(&format!("Draining: {}\n", document.draining.join(", ")));
    }
    if document.services.is_empty() {
        text.push_str("There is no Service of type LoadBalancer.\n");
        text.push_str(&drift(document, paint));
        return text;
    }
    let mut head = vec!["SERVICE", "STATE", "SINCE", "LOAD BALANCER", "ADDRESSES", "REASON"];
    let probed = document.services.iter().any(|service| service.backends.is_some());
    if probed {
        head.insert(BACKENDS_COLUMN, "BACKENDS");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    rows.extend(document.services.iter().map(|service| {
        let mut row = row(service, document.now_ms);
        if probed {
            let brief = service.backends.as_ref().map(BackendsStatus::brief);
            row.insert(BACKENDS_COLUMN, brief.unwrap_or_else(|| "-".to_owned()));
        }
        row
    }));
    for (at, row) in lay_out(&rows).iter().enumerate() {
        let line = row.iter().enumerate().map(|(column, cell)| match (at, column) {
            (0, _) => paint.ink(Ink::Bold, cell),
            (_, 1) => {
                paint.ink(document.services.get(at - 1).map_or(Ink::Dim, |s| ink(&s.state)), cell)
            }
            _ => cell.clone(),
        });
        let line: Vec<String> = line.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
        let Some(service) = at.checked_sub(1).and_then(|at| document.services.get(at)) else {
            continue;
        };
        // What holds up several Services stands above the table.
        let own = |error: &&String| !document.troubles.contains(error);
        for error in service.errors.iter().filter(own) {
            let about = document.obstacles.iter().find(|obstacle| obstacle.cause == *error);
            let attempts = about.map(|obstacle| obstacle.attempts(document.now_ms));
            text.push_str(&paint.ink(Ink::Red, format!("  ! {error}")));
            text.push_str(&attempts.unwrap_or_default());
            text.push('\n');
        }
        if let Some(backends) = &service.backends {
            text.push_str(&ailing(backends, document.now_ms, paint));
        }
    }
    text.push_str(&drift(document, paint));
    text
}

/// Backends that do not answer all probes, by name.
fn ailing(backends: &BackendsStatus, now_ms: u64, paint: Paint) -> String {
    let of = |state: ProbeState, count: usize, words: &str| {
        let own = backends.ailing.iter().filter(|one| one.state == state.word());
        let named: Vec<String> = own
            .map(|one| format!("{} ({})", one.name(), span(now_ms.saturating_sub(one.since_ms))))
            .collect();
        let left_out = count.saturating_sub(NAMED);
        let more = (left_out > 0).then(|| format!(", and {left_out} more"));
        let shown = named.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        (!named.is_empty()).then(|| format!("{words}: {shown}{}", more.unwrap_or_default()))
    };
    let partly = backends.total.saturating_sub(backends.up + backends.down);
    let parts =
        [of(ProbeState::Down, backends.down, "down"), of(ProbeState::Partly, partly, "partly up")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return String::new();
    }
    let (ink, usual) = match backends.some_down_is_usual {
        _ if backends.is_out() => (Ink::Red, ""),
        true => (Ink::Dim, ", as is usual of nodes without a Pod (externalTrafficPolicy: Local)"),
        false => (Ink::Yellow, ""),
    };
    let line = format!("  ~ backends {}{usual}", parts.join("; "));
    format!("{}\n", paint.ink(ink, one_line(&line)))
}

/// What others changed.
fn drift(document: &StatusDocument, paint: Paint) -> String {
    if document.drift.is_empty() {
        return String::new();
    }
    let head = "Changed in Azure by another client:";
    let mut text = format!("\n{}\n", paint.ink(Ink::Bold, head));
    for line in &document.drift {
        let ink = if line.ended_ms.is_some() { Ink::Dim } else { Ink::Yellow };
        let age = span(document.now_ms.saturating_sub(line.noticed_ms));
        text.push_str(&paint.ink(ink, format!("  ~ {} ({age} ago)", drift_line(line))));
        text.push('\n');
    }
    text
}

/// One line about drift.
#[must_use]
pub fn drift_line(line: &DriftStatus) -> String {
    let whom = match line.services.as_slice() {
        [] => String::new(),
        names => format!(" for {}", names.join(", ")),
    };
    let outcome = match line.outcome.as_str() {
        "repairing" => "is being repaired",
        "over" => "drift repaired",
        "paused" => "left so (writes are paused)",
        _ => "left so (driftPolicy is report)",
    };
    format!("{}: {}{whom}; {outcome}", line.resource, line.what)
}

fn row(service: &ServiceStatus, now_ms: u64) -> Vec<String> {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let since = service.since_ms.map(|since| span(now_ms.saturating_sub(since)));
    vec![
        format!("{}/{}", service.namespace, service.name),
        words(&service.state),
        or_dash(since.unwrap_or_default()),
        or_dash(service.load_balancer.clone().unwrap_or_default()),
        or_dash(service.addresses.join(", ")),
        service.waits.join("; "),
    ]
}

/// A state in words.
fn words(state: &str) -> String {
    let known = State::ALL.into_iter().find(|known| known.word() == state);
    known.map_or_else(|| state.to_owned(), |known| known.text().to_owned())
}

fn ink(state: &str) -> Ink {
    match state {
        "programmed" => Ink::Green,
        "refused" | "rejected" => Ink::Red,
        _ => Ink::Yellow,
    }
}

/// A time span with one unit, as kubectl shows ages.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::backends::BackendStatus;
    use crate::status::{LeaderStatus, ObstacleStatus};

    fn service(name: &str, state: &str) -> ServiceStatus {
        ServiceStatus {
            namespace: "default".into(),
            name: name.into(),
            uid: "u".into(),
            state: state.into(),
            since_ms: Some(1_000),
            load_balancer: None,
            addresses: Vec::new(),
            waits: Vec::new(),
            errors: Vec::new(),
            retry_ms: None,
            backends: None,
        }
    }

    #[test]
    fn backends_that_do_not_answer_stand_below_their_service() {
        let down = |node: &str, state: &str, since_ms| BackendStatus {
            node: Some(node.into()),
            address: "10.224.0.4".into(),
            state: state.into(),
            since_ms,
        };
        let backends = BackendsStatus {
            up: 1,
            down: 1,
            total: 3,
            ailing: vec![down("n1", "down", 1_000), down("n2", "partly", 3_000)],
            ..BackendsStatus::default()
        };
        let local = BackendsStatus { some_down_is_usual: true, ..backends.clone() };
        let mut ailing: Vec<BackendStatus> = Vec::new();
        ailing.extend((0..8).map(|at| down(&format!("n{at}"), "down", 1_000)));
        let out = BackendsStatus { down: 8, total: 8, ailing, ..BackendsStatus::default() };
        let with = |name: &str, backends| ServiceStatus { backends, ..service(name, "programmed") };
        let document = StatusDocument {
            now_ms: 4_000,
            services: vec![
                with("a", Some(backends)),
                with("b", Some(local)),
                with("c", Some(out)),
                with("d", None),
            ],
            backend_trouble: Some("GET metrics of loadBalancers/k: later".into()),
            ..StatusDocument::default()
        };
        let want = "\
! GET metrics of loadBalancers/k: later
SERVICE    STATE       SINCE  LOAD BALANCER  ADDRESSES  BACKENDS  REASON
default/a  programmed  3s     -              -          1/3
  ~ backends down: n1 (3s); partly up: n2 (1s)
default/b  programmed  3s     -              -          1/3
  ~ backends down: n1 (3s); partly up: n2 (1s), as is usual of nodes without a Pod \
                    (externalTrafficPolicy: Local)
default/c  programmed  3s     -              -          0/8
  ~ backends down: n0 (3s), n1 (3s), n2 (3s), n3 (3s), n4 (3s), n5 (3s), and 2 more
default/d  programmed  3s     -              -          -
";
        assert_eq!(render(&document, Paint::Plain), want);
        let colored = render(&document, Paint::Colored);
        assert!(colored.contains("\u{1b}[31m  ~ backends down: n0"), "{colored}");
    }

    #[test]
    fn columns_line_up_and_errors_stand_below_their_service() {
        let done = ServiceStatus {
            load_balancer: Some("kubernetes".into()),
            addresses: vec!["20.0.0.1".into()],
            ..service("web", "programmed")
        };
        let failed = ServiceStatus {
            waits: vec!["the finalizer to be written".into()],
            errors: vec!["PUT publicIPAddresses/a: rejected by Azure (QuotaExceeded)".into()],
            retry_ms: Some(10_000),
            ..service("a", "waiting")
        };
        let obstacle = ObstacleStatus {
            kind: "rejected".into(),
            operation: "PUT publicIPAddresses/a".into(),
            code: "QuotaExceeded".into(),
            cause: failed.errors[0].clone(),
            attempt: 3,
            since_ms: Some(1),
            next_ms: Some(10_000),
            services: vec!["default/a".into()],
        };
        let document = StatusDocument {
            now_ms: 4_000,
            services: vec![done, failed],
            obstacles: vec![obstacle],
            ..Default::default()
        };
        let draining = vec!["10.224.0.4".into(), "10.224.0.5".into()];
        let drained = StatusDocument { draining, ..document.clone() };
        assert!(
            render(&drained, Paint::Plain).starts_with("Draining: 10.224.0.4, 10.224.0.5\nSERV")
        );
        let want = "\
SERVICE      STATE       SINCE  LOAD BALANCER  ADDRESSES  REASON
default/web  programmed  3s     kubernetes     20.0.0.1
default/a    waiting     3s     -              -          the finalizer to be written
  ! PUT publicIPAddresses/a: rejected by Azure (QuotaExceeded); attempt 3, next in 6 s
";
        assert_eq!(render(&document, Paint::Plain), want);
        assert!(render(&document, Paint::Colored).contains("\u{1b}[32mprogrammed"));
    }

    /// Azure's words have values of tenants in them.
    #[test]
    fn what_others_wrote_is_no_line_of_ours() {
        let forged = "PUT a: failed (Bad: \nNothing is wrong.\ndefault/b  programmed)";
        let held_up = ServiceStatus {
            waits: vec![forged.into()],
            errors: vec![forged.into()],
            ..service("a\nb", "waiting")
        };
        let troubles = vec![forged.to_owned()];
        let document =
            StatusDocument { services: vec![held_up], troubles, ..StatusDocument::default() };
        let text = render(&document, Paint::Plain);
        assert_eq!(text.lines().count(), 3, "{text}");
        let colored = render(&document, Paint::Colored);
        assert_eq!(colored.lines().count(), 3, "{colored}");
    }

    #[test]
    fn the_leader_stands_first() {
        let mut leader = LeaderStatus {
            this_process: true,
            holder: Some("a_1".into()),
            identity: "a_1".into(),
            lease: "kube-system/ballast".into(),
            trouble: None,
        };
        let line = |leader: &LeaderStatus| {
            let document =
                StatusDocument { leader: Some(leader.clone()), ..StatusDocument::default() };
            let text = render(&document, Paint::Plain);
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(line(&leader), "Leader: this process, a_1");
        leader.this_process = false;
        leader.holder = Some("b_2".into());
        assert_eq!(line(&leader), "Leader: b_2; this process, a_1, stands by");
        leader.holder = None;
        leader.trouble = Some("HTTP 403".into());
        assert_eq!(
            line(&leader),
            "Leader: unknown; this process, a_1, wants Lease kube-system/ballast: HTTP 403"
        );
    }

    #[test]
    fn drift_stands_below_the_table() {
        let line = DriftStatus {
            resource: "loadBalancers/kubernetes".into(),
            what: "rule a-TCP-80 is gone".into(),
            services: vec!["default/web".into()],
            outcome: "reported".into(),
            noticed_ms: 1_000,
            ended_ms: None,
        };
        let document =
            StatusDocument { now_ms: 4_000, drift: vec![line], ..StatusDocument::default() };
        let want = "\
There is no Service of type LoadBalancer.

Changed in Azure by another client:
  ~ loadBalancers/kubernetes: rule a-TCP-80 is gone for default/web; left so (driftPolicy is \
                    report) (3s ago)
";
        assert_eq!(render(&document, Paint::Plain), want);
    }
}
