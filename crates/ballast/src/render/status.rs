//! The status document as a table.

use crate::output::{Ink, Paint};
use crate::render::table::lay_out;
use crate::status::{DriftStatus, ServiceStatus, StatusDocument};

/// The whole table.
#[must_use]
pub fn render(document: &StatusDocument, paint: Paint) -> String {
    let mut text = String::new();
    if let Some(leader) = &document.leader {
        text.push_str(&paint.ink(Ink::Dim, format!("{}\n", leader.line())));
    }
    for trouble in &document.troubles {
        text.push_str(&paint.ink(Ink::Red, format!("! {trouble}\n")));
    }
    if !document.draining.is_empty() {
        text.push_str(&format!("Draining: {}\n", document.draining.join(", ")));
    }
    if document.services.is_empty() {
        text.push_str("There is no Service of type LoadBalancer.\n");
        text.push_str(&drift(document, paint));
        return text;
    }
    let head = ["SERVICE", "STATE", "SINCE", "LOAD BALANCER", "ADDRESSES", "WAITS ON"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(document.services.iter().map(|service| row(service, document.now_ms)));
    for (at, row) in lay_out(&rows).iter().enumerate() {
        let line = row.iter().enumerate().map(|(column, cell)| match (at, column) {
            (0, _) => paint.ink(Ink::Bold, cell),
            (_, 1) => paint.ink(ink(cell.trim()), cell),
            _ => cell.clone(),
        });
        let line: Vec<String> = line.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
        let Some(service) = at.checked_sub(1).and_then(|at| document.services.get(at)) else {
            continue;
        };
        for error in &service.errors {
            text.push_str(&paint.ink(Ink::Red, format!("  ! {error}")));
            if let Some(retry_ms) = service.retry_ms {
                let left = span(retry_ms.saturating_sub(document.now_ms));
                text.push_str(&format!(" (next try in {left})"));
            }
            text.push('\n');
        }
    }
    text.push_str(&drift(document, paint));
    text
}

/// What others changed.
fn drift(document: &StatusDocument, paint: Paint) -> String {
    if document.drift.is_empty() {
        return String::new();
    }
    let head = "Changed in Azure by somebody else:";
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
        "over" => "as we left it again",
        _ => "left so (driftPolicy is report)",
    };
    format!("{}: {}{whom}; {outcome}", line.resource, line.what)
}

fn row(service: &ServiceStatus, now_ms: u64) -> Vec<String> {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let since = service.since_ms.map(|since| span(now_ms.saturating_sub(since)));
    vec![
        format!("{}/{}", service.namespace, service.name),
        service.state.clone(),
        or_dash(since.unwrap_or_default()),
        or_dash(service.load_balancer.clone().unwrap_or_default()),
        or_dash(service.addresses.join(", ")),
        service.waits.join("; "),
    ]
}

fn ink(state: &str) -> Ink {
    match state {
        "programmed" => Ink::Green,
        "refused" => Ink::Red,
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
    use crate::status::LeaderStatus;

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
        }
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
            errors: vec!["QuotaExceeded: no more".into()],
            retry_ms: Some(10_000),
            ..service("a", "waiting")
        };
        let document =
            StatusDocument { now_ms: 4_000, services: vec![done, failed], ..Default::default() };
        let draining = vec!["10.224.0.4".into(), "10.224.0.5".into()];
        let drained = StatusDocument { draining, ..document.clone() };
        assert!(
            render(&drained, Paint::Plain).starts_with("Draining: 10.224.0.4, 10.224.0.5\nSERV")
        );
        let want = "\
SERVICE      STATE       SINCE  LOAD BALANCER  ADDRESSES  WAITS ON
default/web  programmed  3s     kubernetes     20.0.0.1
default/a    waiting     3s     -              -          the finalizer to be written
  ! QuotaExceeded: no more (next try in 6s)
";
        assert_eq!(render(&document, Paint::Plain), want);
        assert!(render(&document, Paint::Colored).contains("\u{1b}[32mprogrammed"));
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
            "Leader: nobody known; this process, a_1, wants Lease kube-system/ballast: HTTP 403"
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

Changed in Azure by somebody else:
  ~ loadBalancers/kubernetes: rule a-TCP-80 is gone for default/web; left so (driftPolicy is \
                    report) (3s ago)
";
        assert_eq!(render(&document, Paint::Plain), want);
    }
}
