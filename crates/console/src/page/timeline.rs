//! The time line: which changes went together, how long it took, what came back.

use super::parts::{self, Turn, cell, table, url_of_page};
use super::{Place, frame};
use crate::history::{Call, History, Outcome};
use crate::html::Html;
use crate::span;
use crate::view::Head;

/// Calls on a page.
const SIZE: usize = 40;
/// The longest time that is drawn.
const WINDOW_MS: u64 = 60_000;
/// Resources that are drawn.
const LANES: usize = 12;
/// Width of what is drawn beside the names.
const WIDTH: u64 = 800;
const NAMES: u64 = 280;
const ROW: u64 = 32;

/// The page.
#[must_use]
pub fn timeline(head: &Head, history: &History, page: usize) -> String {
    let calls: Vec<&Call> = history.calls().collect();
    frame(head, Place::Timeline, "Time line", |h| {
        h.leaf("h1", &[], "Time line");
        if calls.is_empty() {
            let text = "Nothing was written to Azure since this process began.";
            h.leaf("p", &[("class", "lead")], text);
            return;
        }
        draw(h, &calls, head.now_ms);
        let url = url_of_page("/timeline", &[]);
        let turn = Turn { url: &url, page, size: SIZE, total: calls.len(), noun: "calls" };
        let shown = calls.get(turn.range()).unwrap_or_default();
        let longest = shown.iter().map(|c| took(c, head.now_ms)).max().unwrap_or(1).max(1);
        h.tag("section", &[("aria-labelledby", "calls")], |h| {
            h.leaf("h2", &[("id", "calls")], "Calls");
            let columns = ["Sent, UTC", "Call", "Took", "Outcome", "Changes that went together"];
            table(h, "Calls", &columns, shown, |h, call| row(h, call, head, longest));
            turn.pager(h);
        });
    })
}

fn took(call: &Call, now_ms: u64) -> u64 {
    call.ended_ms.unwrap_or(now_ms).saturating_sub(call.sent_ms)
}

fn row(h: &mut Html, call: &Call, head: &Head, longest: u64) {
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
            Outcome::Done => parts::badge(h, "done", "done"),
            Outcome::Failed(why) => {
                parts::badge(h, "failed", "failed");
                h.leaf("p", &[("class", "why")], why);
            }
        }
        if call.attempt > 1 {
            h.leaf("span", &[("class", "quiet")], &format!(" try {}", call.attempt));
        }
    });
    cell(h, "Changes that went together", |h| match call.services.len() {
        0 => h.leaf("span", &[("class", "quiet")], "no Service's"),
        _ => parts::names(h, &call.services),
    });
}

/// One line a resource: each has one write at a time.
fn draw(h: &mut Html, calls: &[&Call], now_ms: u64) {
    let end = |c: &Call| c.ended_ms.unwrap_or(now_ms);
    let Some(to_ms) = calls.iter().map(|c| end(c)).max() else { return };
    let earliest = to_ms.saturating_sub(WINDOW_MS);
    let drawn: Vec<&&Call> = calls.iter().filter(|c| end(c) >= earliest).collect();
    let from_ms = drawn.iter().map(|c| c.sent_ms).min().unwrap_or(earliest).max(earliest);
    let length = to_ms.saturating_sub(from_ms).max(1);
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
    let label = format!("{} calls within {}", drawn.len(), span::duration(length));
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
            scale(h, length, height);
            for (at, lane) in (0..).zip(lanes) {
                let y = ROW * at;
                let baseline = (y + 20).to_string();
                h.leaf(
                    "text",
                    &[("class", "second"), ("x", "0"), ("y", &baseline)],
                    &lane_name(lane),
                );
                for call in drawn.iter().filter(|c| c.resource == lane.resource) {
                    let x = |ms: u64| NAMES + ms.saturating_sub(from_ms) * WIDTH / length;
                    let (left, right) = (x(call.sent_ms), x(end(call)));
                    bar(h, call, (left, (right - left).max(3), y + 8));
                }
            }
        });
    });
    if hidden > 0 {
        let text = format!("{hidden} more resources are in the list below.");
        h.leaf("p", &[("class", "quiet")], &text);
    }
}

fn scale(h: &mut Html, length: u64, height: u64) {
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
        h.leaf("text", &attributes, &span::duration(length * part / 4));
    }
}

fn bar(h: &mut Html, call: &Call, (x, width, y): (u64, u64, u64)) {
    let class = match call.outcome {
        Outcome::UnderWay => "call under-way",
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
