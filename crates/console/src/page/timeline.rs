//! The time line: which changes went together, how long it took, what came back.

use super::change::{self, Extent};
use super::parts::{self, Turn, cell, table, url, url_of_page};
use super::{Place, frame};
use crate::history::{Call, Outcome};
use crate::html::Html;
use crate::span;
use crate::view::Head;

/// What a table of calls shows.
const COLUMNS: [&str; 6] =
    ["Sent, UTC", "Call", "Took", "Outcome", "Why and what", "Services it was for"];
/// Causes of a call that are shown.
const CAUSES: usize = 5;
/// Egress gateways of a call that are shown.
const GATEWAYS: usize = 3;
/// Calls on a page.
const SIZE: usize = 25;
/// Services of one call on a page.
const SERVICES: usize = 200;
/// Resources that are drawn.
const LANES: usize = 12;
/// Calls that are drawn.
const BARS: usize = 300;
/// Width of what is drawn beside the names.
const WIDTH: u64 = 800;
const NAMES: u64 = 280;
const ROW: u64 = 32;

/// How much of the past is drawn: up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// A minute.
    Minute,
    /// Fifteen minutes.
    Quarter,
    /// An hour.
    #[default]
    Hour,
}

impl Window {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Quarter, Self::Hour];

    /// The word in addresses of pages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Minute => "1m",
            Self::Quarter => "15m",
            Self::Hour => "1h",
        }
    }

    /// The same, empty where it need not be said.
    fn asked(self) -> &'static str {
        if self == Self::default() { "" } else { self.word() }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Minute => "last minute",
            Self::Quarter => "last 15 minutes",
            Self::Hour => "last hour",
        }
    }

    fn length_ms(self) -> u64 {
        match self {
            Self::Minute => 60_000,
            Self::Quarter => 900_000,
            Self::Hour => 3_600_000,
        }
    }
}

/// What of the time line is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineQuery {
    /// The correlation id of one write; empty: all of them.
    pub write: String,
    /// How much is drawn.
    pub window: Window,
    /// The page, from 0.
    pub page: usize,
}

/// The page; calls come with the last one first.
#[must_use]
pub fn timeline(head: &Head, calls: &[Call], query: &TimelineQuery) -> String {
    let TimelineQuery { write, window, page } = query;
    if let Some(call) = calls.iter().find(|call| !write.is_empty() && call.correlation == *write) {
        return one(head, call, *page);
    }
    let calls: Vec<&Call> = calls.iter().collect();
    let (window, page) = (*window, *page);
    frame(head, Place::Timeline, "Time line", |h| {
        h.leaf("h1", &[], "Time line");
        if calls.is_empty() {
            let text = "Nothing was written to Azure, as far as this process remembers.";
            h.leaf("p", &[("class", "lead")], text);
            return;
        }
        windows(h, window);
        draw(h, &calls, head.now_ms, window);
        let url = url_of_page("/timeline", &[("span", window.asked())]);
        let turn = Turn { url: &url, page, size: SIZE, total: calls.len(), noun: "calls" };
        let shown = calls.get(turn.range()).unwrap_or_default();
        let longest = shown.iter().map(|c| took(c, head.now_ms)).max().unwrap_or(1).max(1);
        h.tag("section", &[("aria-labelledby", "calls")], |h| {
            h.leaf("h2", &[("id", "calls")], "Calls");
            table(h, "Calls", &COLUMNS, shown, |h, call| {
                row(h, call, (head, longest), Extent::Part);
            });
            turn.pager(h);
        });
    })
}

/// A write with all of its fields and Services.
fn one(head: &Head, call: &Call, page: usize) -> String {
    frame(head, Place::Timeline, "One write", |h| {
        h.leaf("h1", &[], &format!("{} {}", call.method, call.resource));
        h.leaf("p", &[("class", "quiet")], &call.id);
        let longest = took(call, head.now_ms).max(1);
        table(h, "Call", &COLUMNS, [call], |h, call| {
            row(h, call, (head, longest), Extent::Whole);
        });
        change::difference(h, call, Extent::Whole);
        services(h, call, page);
        h.tag("p", &[], |h| h.leaf("a", &[("href", "/timeline")], "All writes"));
    })
}

fn services(h: &mut Html, call: &Call, page: usize) {
    if call.services.is_empty() {
        return;
    }
    h.tag("section", &[("aria-labelledby", "services")], |h| {
        h.leaf("h2", &[("id", "services")], "Services it was for");
        let url = url_of_page("/timeline", &[("write", &call.correlation)]);
        let total = call.services.len();
        let turn = Turn { url: &url, page, size: SERVICES, total, noun: "Services" };
        let shown = call.services.get(turn.range()).unwrap_or_default();
        h.tag("p", &[], |h| parts::list(h, shown));
        turn.pager(h);
    });
}

/// Calls in a table, as on the page of a Service.
pub(super) fn calls(h: &mut Html, head: &Head, calls: &[&Call]) {
    let longest = calls.iter().map(|c| took(c, head.now_ms)).max().unwrap_or(1).max(1);
    table(h, "Writes", &COLUMNS, calls, |h, call| row(h, call, (head, longest), Extent::Part));
}

fn took(call: &Call, now_ms: u64) -> u64 {
    end(call, now_ms).saturating_sub(call.sent_ms)
}

/// When a call ended, or until when it has lasted so far.
fn end(call: &Call, now_ms: u64) -> u64 {
    // How long a write took whose end was not seen is not known.
    let open_ms = if call.outcome == Outcome::Unknown { call.sent_ms } else { now_ms };
    call.ended_ms.unwrap_or(open_ms)
}

fn row(h: &mut Html, call: &Call, (head, longest): (&Head, u64), extent: Extent) {
    cell(h, "Sent, UTC", |h| span::clock(h, call.sent_ms));
    cell(h, "Call", |h| {
        h.leaf("span", &[("class", "method")], &call.method);
        h.text(" ");
        h.leaf("span", &[("class", "resource")], &call.resource);
    });
    cell(h, "Took", |h| {
        let ms = took(call, head.now_ms);
        h.leaf("span", &[("class", "took")], &span::duration(ms));
        let width = (ms * 64 / longest).max(2).to_string();
        let attributes =
            [("class", "bar-of"), ("width", "64"), ("height", "4"), ("aria-hidden", "true")];
        h.tag("svg", &attributes, |h| {
            h.leaf("rect", &[("width", &width), ("height", "4"), ("rx", "2")], "");
        });
    });
    cell(h, "Outcome", |h| {
        match &call.outcome {
            Outcome::UnderWay => parts::badge(h, "waiting", "under way"),
            Outcome::Unknown => parts::badge(h, "waiting", "outcome unknown"),
            Outcome::Done => parts::badge(h, "done", "done"),
            Outcome::Failed(why) => {
                parts::badge(h, "failed", "failed");
                h.leaf("p", &[("class", "why")], why);
            }
        }
        if call.attempt > 1 {
            h.leaf("span", &[("class", "quiet")], &format!(" attempt {}", call.attempt));
        }
    });
    cell(h, "Why and what", |h| why(h, call, extent));
    cell(h, "Services it was for", |h| served(h, call, extent));
}

/// What a write was for. An egress gateway has no page of its own.
fn served(h: &mut Html, call: &Call, extent: Extent) {
    let whole = url("/timeline", &[("write", &call.correlation)]);
    if !call.services.is_empty() {
        parts::names(h, &call.services, &whole);
    } else if call.gateways.is_empty() {
        h.leaf("span", &[("class", "quiet")], "no Service");
    }
    let shown = match extent {
        Extent::Part => GATEWAYS,
        Extent::Whole => call.gateways.len(),
    };
    for name in call.gateways.iter().take(shown) {
        h.leaf("p", &[], &format!("egress gateway {name}"));
    }
    let more = call.gateways.len().saturating_sub(shown);
    if more > 0 {
        let text = format!("and {more} more egress gateways");
        h.tag("p", &[], |h| h.leaf("a", &[("href", &whole)], &text));
    }
}

/// What a write was caused by, what it changed, and where else it is seen.
fn why(h: &mut Html, call: &Call, extent: Extent) {
    let shown = match extent {
        Extent::Part => CAUSES,
        Extent::Whole => call.causes.len(),
    };
    for cause in call.causes.iter().take(shown) {
        h.leaf("p", &[("class", "cause")], cause);
    }
    let more = call.causes.len().saturating_sub(shown);
    if more > 0 {
        let url = url("/timeline", &[("write", &call.correlation)]);
        let text = format!("and {more} more causes");
        h.tag("p", &[], |h| h.leaf("a", &[("href", &url)], &text));
    }
    if extent == Extent::Part {
        change::difference(h, call, extent);
    }
    h.tag("p", &[("class", "quiet")], |h| {
        h.text("correlation id ");
        h.leaf("code", &[], &call.correlation);
        for (url, name) in
            [(&call.portal, "resource in the portal"), (&call.activity_log, "activity log")]
        {
            if let Some(url) = url.as_deref() {
                h.text(", ");
                h.leaf("a", &[("href", url), ("rel", "noreferrer")], name);
            }
        }
    });
}

/// How much can be drawn.
fn windows(h: &mut Html, chosen: Window) {
    h.tag("nav", &[("class", "choices"), ("aria-label", "Time drawn")], |h| {
        h.leaf("span", &[], "Drawn:");
        for window in Window::ALL {
            let url = url("/timeline", &[("span", window.asked())]);
            match window == chosen {
                true => h.leaf("a", &[("href", &url), ("aria-current", "true")], window.text()),
                false => h.leaf("a", &[("href", &url)], window.text()),
            }
        }
    });
}

/// One line a resource: each has one write at a time.
fn draw(h: &mut Html, calls: &[&Call], now_ms: u64, window: Window) {
    let end = |c: &Call| end(c, now_ms);
    let length = window.length_ms();
    let from_ms = now_ms.saturating_sub(length);
    let mut drawn: Vec<&&Call> = calls.iter().filter(|c| end(c) >= from_ms).collect();
    if drawn.is_empty() {
        let text = format!("Nothing was written to Azure within the {}.", window.text());
        h.leaf("p", &[("class", "empty")], &text);
        return;
    }
    let left_out = drawn.split_off(drawn.len().min(BARS)).len();
    let mut lanes: Vec<&Call> = Vec::new();
    for call in drawn.iter().rev() {
        if !lanes.iter().any(|lane| lane.resource == call.resource) {
            lanes.push(call);
        }
    }
    let hidden = lanes.len().saturating_sub(LANES);
    let lanes = &lanes[hidden..];
    let (width, height) = (NAMES + WIDTH + 16, ROW * (lanes.len() as u64 + 1));
    let (w, t, view) = (width.to_string(), height.to_string(), format!("0 0 {width} {height}"));
    let label = format!("{} calls within the {}", drawn.len(), window.text());
    let region = [
        ("class", "drawing"),
        ("role", "region"),
        ("tabindex", "0"),
        ("aria-label", "Time line, drawn"),
    ];
    h.tag("div", &region, |h| {
        let attributes = [
            ("class", "lanes"),
            ("viewBox", view.as_str()),
            ("width", &w),
            ("height", &t),
            ("role", "img"),
            ("aria-label", &label),
        ];
        h.tag("svg", &attributes, |h| {
            scale(h, (from_ms, length), height);
            for (at, lane) in (0..).zip(lanes) {
                let y = ROW * at;
                let baseline = (y + 20).to_string();
                h.leaf(
                    "text",
                    &[("class", "second"), ("x", "0"), ("y", &baseline)],
                    &lane_name(lane),
                );
                for call in drawn.iter().filter(|c| c.resource == lane.resource) {
                    let x =
                        |ms: u64| NAMES + ms.saturating_sub(from_ms).min(length) * WIDTH / length;
                    let (left, right) = (x(call.sent_ms), x(end(call)));
                    bar(h, call, (left, (right - left).max(3), y + 8));
                }
            }
        });
    });
    for (count, what) in [(hidden, "more resources"), (left_out, "earlier calls")] {
        if count > 0 {
            let text = format!("{count} {what} are in the list below.");
            h.tag("p", &[], |h| h.leaf("a", &[("href", "#calls")], &text));
        }
    }
}

/// The time of day, UTC.
fn scale(h: &mut Html, (from_ms, length): (u64, u64), height: u64) {
    let foot = height - ROW;
    for part in 0..=4 {
        let x = (NAMES + WIDTH * part / 4).to_string();
        let bottom = foot.to_string();
        let attributes =
            [("class", "grid"), ("x1", x.as_str()), ("x2", &x), ("y1", "0"), ("y2", &bottom)];
        h.leaf("line", &attributes, "");
        let y = (foot + 20).to_string();
        let anchor = match part {
            0 => "start",
            4 => "end",
            _ => "middle",
        };
        let attributes =
            [("class", "second"), ("x", x.as_str()), ("y", &y), ("text-anchor", anchor)];
        h.leaf("text", &attributes, &span::time_of_day(from_ms + length * part / 4));
    }
}

fn bar(h: &mut Html, call: &Call, (x, width, y): (u64, u64, u64)) {
    let class = match call.outcome {
        Outcome::UnderWay | Outcome::Unknown => "call under-way",
        Outcome::Done => "call done",
        Outcome::Failed(_) => "call failed",
    };
    let (x, y, width) = (x.to_string(), y.to_string(), width.to_string());
    h.tag("g", &[], |h| {
        let n = call.services.len();
        h.leaf("title", &[], &format!("{} {}, {n} Services", call.method, call.resource));
        let attributes = [
            ("class", class),
            ("x", x.as_str()),
            ("y", &y),
            ("width", &width),
            ("height", "16"),
            ("rx", "3"),
        ];
        h.leaf("rect", &attributes, "");
    });
}

/// A public IP's name is a long number: whose it is says more.
fn lane_name(call: &Call) -> String {
    match (call.resource.split_once('/'), &*call.services) {
        (Some(("publicIPAddresses", _)), [service]) => short(&format!("public IP of {service}")),
        _ => short(&call.resource),
    }
}

/// The end of a name says more than its beginning.
fn short(name: &str) -> String {
    const LETTERS: usize = 32;
    let count = name.chars().count();
    if count <= LETTERS {
        return name.to_owned();
    }
    let head: String = name.chars().take(LETTERS / 2 - 1).collect();
    let tail: String = name.chars().skip(count - LETTERS / 2).collect();
    format!("{head}…{tail}")
}
