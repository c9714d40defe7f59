//! What `status --watch` writes: on a terminal the lines that changed, elsewhere one line for each
//! change.

use crate::output::{Format, Paint};
use crate::render::status::{drift_line, render};
use crate::status::{ServiceStatus, StatusDocument};
use edge::terminal::safe;
use std::fmt::Write as _;

/// What was written last.
#[derive(Debug)]
pub struct Watch {
    format: Format,
    paint: Paint,
    terminal: bool,
    last: StatusDocument,
    /// Lines on the terminal.
    lines: Vec<String>,
    /// Why nothing can be seen now.
    trouble: Option<String>,
}

impl Watch {
    /// Nothing is written yet; `terminal` is whether a terminal reads.
    #[must_use]
    pub fn new(format: Format, paint: Paint, terminal: bool) -> Self {
        let terminal = terminal && format == Format::Text;
        let (last, lines, trouble) = (StatusDocument::default(), Vec::new(), None);
        Self { format, paint, terminal, last, lines, trouble }
    }

    /// Whether a running controller is watched.
    #[must_use]
    pub fn is_of_controller(&self) -> bool {
        self.last.writes.is_some()
    }

    /// The first look: everything.
    pub fn begin(&mut self, document: StatusDocument) -> String {
        let text = match (self.format, self.terminal) {
            (Format::Json, _) => json(&document),
            (Format::Text, false) => safe(&render(&document, self.paint)).into_owned(),
            (Format::Text, true) => {
                let clear = "\u{1b}[2J\u{1b}[H";
                format!("{clear}{}", self.redraw(&document))
            }
        };
        self.last = document;
        text
    }

    /// Another look, or why it failed: what is to be written.
    pub fn see(&mut self, seen: Result<StatusDocument, String>) -> String {
        let document = match seen {
            Ok(document) => document,
            Err(why) => return self.miss(why),
        };
        let back = self.trouble.take().is_some();
        let mut text = match (self.format, self.terminal) {
            (Format::Json, _) if is_same(&self.last, &document) => String::new(),
            (Format::Json, _) => json(&document),
            (Format::Text, false) => safe(&changes(&self.last, &document)).into_owned(),
            (Format::Text, true) => self.redraw(&document),
        };
        if back && self.format == Format::Text && !self.terminal {
            text.insert_str(0, "the status is back\n");
        }
        self.last = document;
        text
    }

    fn miss(&mut self, why: String) -> String {
        if self.trouble.as_ref() == Some(&why) {
            return String::new();
        }
        let text = match self.format {
            Format::Json => String::new(),
            Format::Text if self.terminal => {
                let troubles = vec![why.clone()];
                let document = StatusDocument { troubles, ..self.last.clone() };
                self.redraw(&document)
            }
            Format::Text => format!("! {}\n", safe(&why)),
        };
        self.trouble = Some(why);
        text
    }

    /// The end: the cursor goes below what stands.
    #[must_use]
    pub fn end(&self) -> String {
        if self.terminal { format!("\u{1b}[{};1H", self.lines.len() + 1) } else { String::new() }
    }

    /// Writes the lines that differ from those on the terminal, each at its place.
    fn redraw(&mut self, document: &StatusDocument) -> String {
        let text = render(document, self.paint);
        let lines: Vec<String> = safe(&text).lines().map(str::to_owned).collect();
        let mut out = String::new();
        for (at, line) in lines.iter().enumerate() {
            if self.lines.get(at) != Some(line) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\u{1b}[{};1H{line}\u{1b}[K", at + 1);
            }
        }
        if lines.len() < self.lines.len() {
            let _ = write!(out, "\u{1b}[{};1H\u{1b}[J", lines.len() + 1);
        }
        self.lines = lines;
        out
    }
}

fn json(document: &StatusDocument) -> String {
    serde_json::to_string(document).map(|text| safe(&text).into_owned() + "\n").unwrap_or_default()
}

/// Whether two documents say the same at two times.
fn is_same(a: &StatusDocument, b: &StatusDocument) -> bool {
    let bare =
        |d: &StatusDocument| StatusDocument { now_ms: 0, writes: None, reads: None, ..d.clone() };
    bare(a) == bare(b)
}

/// One line for each thing that is not as it was.
fn changes(old: &StatusDocument, new: &StatusDocument) -> String {
    let mut text = String::new();
    if let Some(leader) = new.leader.as_ref().filter(|_| new.leader != old.leader) {
        let _ = writeln!(text, "{}", leader.line());
    }
    for trouble in new.troubles.iter().filter(|t| !old.troubles.contains(t)) {
        let _ = writeln!(text, "! {trouble}");
    }
    let find = |all: &[ServiceStatus], uid: &str| all.iter().find(|s| s.uid == uid).cloned();
    for service in &new.services {
        let was = find(&old.services, &service.uid);
        if was.as_ref().map(said) != Some(said(service)) {
            let _ = writeln!(text, "{}", said(service));
        }
    }
    for service in old.services.iter().filter(|s| find(&new.services, &s.uid).is_none()) {
        let _ = writeln!(text, "{}/{} is gone", service.namespace, service.name);
    }
    let known = |line: &String| old.drift.iter().any(|l| drift_line(l) == *line);
    for line in new.drift.iter().map(drift_line).filter(|line| !known(line)) {
        let _ = writeln!(text, "~ {line}");
    }
    text
}

/// A Service in one line.
fn said(service: &ServiceStatus) -> String {
    let mut line = format!("{}/{} is {}", service.namespace, service.name, service.state);
    if !service.addresses.is_empty() {
        let _ = write!(line, " at {}", service.addresses.join(", "));
    }
    if !service.waits.is_empty() {
        let _ = write!(line, ", waits on {}", service.waits.join("; "));
    }
    if let Some(backends) = &service.backends {
        let _ = write!(line, ", {} backends up", backends.brief());
    }
    for error in &service.errors {
        let _ = write!(line, " ! {error}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(state: &str, addresses: &[&str], now_ms: u64) -> StatusDocument {
        let service = ServiceStatus {
            namespace: "default".into(),
            name: "web".into(),
            uid: "u".into(),
            state: state.into(),
            since_ms: None,
            load_balancer: None,
            addresses: addresses.iter().map(ToString::to_string).collect(),
            waits: Vec::new(),
            errors: Vec::new(),
            retry_ms: None,
            backends: None,
        };
        let services = vec![service];
        StatusDocument { now_ms, services, writes: Some(now_ms), ..StatusDocument::default() }
    }

    #[test]
    fn without_a_terminal_each_change_is_one_line() {
        let mut watch = Watch::new(Format::Text, Paint::Plain, false);
        assert!(watch.begin(document("waiting", &[], 1)).contains("default/web"));
        assert_eq!(watch.see(Ok(document("waiting", &[], 2))), "");
        let text = watch.see(Ok(document("programmed", &["20.0.0.1"], 3)));
        assert_eq!(text, "default/web is programmed at 20.0.0.1\n");
        assert_eq!(watch.see(Err("nobody answers".to_owned())), "! nobody answers\n");
        assert_eq!(watch.see(Err("nobody answers".to_owned())), "", "said once");
        let text = watch.see(Ok(document("programmed", &["20.0.0.1"], 4)));
        assert_eq!(text, "the status is back\n");
        let empty = StatusDocument { services: Vec::new(), ..document("", &[], 5) };
        assert_eq!(watch.see(Ok(empty)), "default/web is gone\n");
        assert_eq!(watch.end(), "");
    }

    #[test]
    fn a_terminal_gets_only_the_lines_that_changed() {
        let mut watch = Watch::new(Format::Text, Paint::Plain, true);
        let first = watch.begin(document("waiting", &[], 1));
        assert!(first.starts_with("\u{1b}[2J") && first.contains("SERVICE"));
        let second = watch.see(Ok(document("waiting", &["20.0.0.1"], 2)));
        assert!(!second.contains("\u{1b}[2J"), "nothing is cleared: {second:?}");
        assert!(second.contains("\u{1b}[2;1Hdefault/web"), "{second:?}");
        assert_eq!(watch.see(Ok(document("waiting", &["20.0.0.1"], 3))), "");
        let empty = StatusDocument { services: Vec::new(), ..document("", &[], 4) };
        assert!(watch.see(Ok(empty)).ends_with("\u{1b}[2;1H\u{1b}[J"), "the rest goes");
        assert_eq!(watch.end(), "\u{1b}[2;1H");
    }

    #[test]
    fn json_is_one_document_a_line_and_only_when_something_changed() {
        let mut watch = Watch::new(Format::Json, Paint::Plain, true);
        assert_eq!(watch.begin(document("waiting", &[], 1)).lines().count(), 1);
        assert_eq!(watch.see(Ok(document("waiting", &[], 2))), "");
        assert_eq!(watch.see(Ok(document("programmed", &[], 3))).lines().count(), 1);
    }
}
