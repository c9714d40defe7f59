//! What several pages have: badges, tables, pagers, findings.

use crate::html::{Html, grouped, url_part};
use crate::span;
use crate::topology::service_url;
use crate::view::{Fault, Grade};
use model::ServiceName;
use model::report::State;

/// A shape of its own for each word, so that colour is not needed to tell them apart.
pub(super) fn shape(h: &mut Html, class: &'static str) {
    let path = match class {
        "programmed" | "done" => "M2 6.5 5 9.5 10 3",
        "refused" | "rejected" | "failed" => "M3 3 9 9M9 3 3 9",
        "removing" => "M2.5 6H9.5",
        "held" => "M4 2.5V9.5M8 2.5V9.5",
        "refused_serving" => "M2 6.5 5 9.5 10 3M8 8 11 11",
        "note" => "M6 2.5V6.5M6 9V9.2",
        _ => "M2 6H2.1M6 6H6.1M10 6H10.1",
    };
    let attributes = [
        ("class", "shape"),
        ("viewBox", "0 0 12 12"),
        ("aria-hidden", "true"),
        ("width", "12"),
        ("height", "12"),
    ];
    h.tag("svg", &attributes, |h| h.leaf("path", &[("d", path)], ""));
}

/// A word with a shape and a colour.
pub(super) fn badge(h: &mut Html, class: &'static str, word: &str) {
    let classes = format!("badge {class}");
    h.tag("span", &[("class", &classes)], |h| {
        shape(h, class);
        h.text(word);
    });
}

/// A state's badge.
pub(super) fn state(h: &mut Html, state: State) {
    badge(h, state.word(), state.text());
}

/// A grade's badge.
pub(super) fn grade(h: &mut Html, grade: Grade) {
    let class = match grade {
        Grade::Refused => "refused",
        Grade::HeldUp => "failed",
        Grade::Held => "held",
        Grade::Note => "note",
    };
    badge(h, class, grade.word());
}

/// A Service's name, leading to its page.
pub(super) fn service_link(h: &mut Html, name: &ServiceName) {
    h.tag("a", &[("class", "name"), ("href", &service_url(name))], |h| {
        h.leaf("span", &[("class", "quiet")], &format!("{}/", name.namespace));
        h.text(&name.name);
    });
}

/// A Service by its printed name.
pub(super) fn printed_link(h: &mut Html, name: &str) {
    match name.split_once('/') {
        Some((namespace, name)) => service_link(h, &ServiceName::new(namespace, name)),
        None => h.text(name),
    }
}

/// Names, one after the other.
pub(super) fn list(h: &mut Html, names: &[ServiceName]) {
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            h.text(", ");
        }
        service_link(h, name);
    }
}

/// Names, the first few of them; the others are folded, and where there are too many for that
/// `whole` leads to all of them.
pub(super) fn names(h: &mut Html, names: &[ServiceName], whole: &str) {
    const FEW: usize = 3;
    const MANY: usize = 20;
    let (first, rest) = names.split_at(names.len().min(FEW));
    list(h, first);
    if rest.is_empty() {
        return;
    }
    h.tag("details", &[], |h| {
        h.leaf("summary", &[], &format!("and {} more", grouped(rest.len() as u64)));
        let (shown, hidden) = rest.split_at(rest.len().min(MANY));
        list(h, shown);
        if hidden.is_empty() {
            return;
        }
        let more = format!("{} more", grouped(hidden.len() as u64));
        h.text(" and ");
        h.leaf("a", &[("href", whole)], &more);
    });
}

/// A table whose rows become cards on a narrow screen. The roles are written out, because browsers
/// forget them where a table is not laid out as one.
pub(super) fn table<T>(
    h: &mut Html,
    label: &str,
    columns: &[&'static str],
    rows: impl IntoIterator<Item = T>,
    row: impl Fn(&mut Html, T),
) {
    h.tag("table", &[("role", "table"), ("aria-label", label)], |h| {
        h.tag("thead", &[("role", "rowgroup")], |h| {
            h.tag("tr", &[("role", "row")], |h| {
                for column in columns {
                    h.leaf("th", &[("scope", "col"), ("role", "columnheader")], column);
                }
            });
        });
        h.tag("tbody", &[("role", "rowgroup")], |h| {
            for one in rows {
                h.tag("tr", &[("role", "row")], |h| row(h, one));
            }
        });
    });
}

/// A cell; the label stands beside it on a narrow screen.
pub(super) fn cell(h: &mut Html, label: &'static str, inner: impl FnOnce(&mut Html)) {
    h.tag("td", &[("role", "cell"), ("data-label", label)], |h| {
        h.tag("div", &[], inner);
    });
}

/// A cell with nothing in it, which a narrow screen leaves out.
pub(super) fn nothing(h: &mut Html) {
    h.leaf("td", &[("role", "cell"), ("class", "nothing")], "–");
}

/// What is wrong, for the one it concerns.
pub(super) fn fault(h: &mut Html, fault: &Fault, now_ms: u64) {
    h.tag("div", &[("class", "fault")], |h| {
        h.tag("p", &[("class", "fault-head")], |h| {
            grade(h, fault.grade);
            h.leaf("span", &[("class", "quiet")], &fault.rule);
        });
        h.tag("p", &[], |h| {
            if let Some(key) = &fault.key {
                h.leaf("code", &[], key);
                h.text(": ");
            }
            h.text(&fault.text);
        });
        if let (None, Some(attempt)) = (fault.retry_ms, fault.attempt) {
            h.leaf("p", &[("class", "quiet")], &format!("Attempt {attempt} is under way."));
        }
        if let Some(retry_ms) = fault.retry_ms {
            h.tag("p", &[("class", "quiet")], |h| {
                if let Some(attempt) = fault.attempt {
                    h.text(&format!("Attempt {attempt}. "));
                }
                h.text("Next attempt in ");
                span::until(h, retry_ms, now_ms);
            });
        }
    });
}

/// A part of a list: what is on the page, and how to turn it.
pub(super) struct Turn<'a> {
    /// Path and query, ending where the page's number is to be put.
    pub url: &'a str,
    /// The page, from 0.
    pub page: usize,
    /// Items on a page.
    pub size: usize,
    /// All items.
    pub total: usize,
    /// What they are.
    pub noun: &'static str,
}

impl Turn<'_> {
    /// Items on this page.
    pub fn range(&self) -> std::ops::Range<usize> {
        let last = self.total.saturating_sub(1) / self.size;
        let from = self.page.min(last) * self.size;
        from..(from + self.size).min(self.total)
    }

    /// Links to the pages before and after.
    pub fn pager(&self, h: &mut Html) {
        if self.total <= self.size {
            return;
        }
        let range = self.range();
        let page = range.start / self.size;
        // There may be several on a page.
        let label = format!("Parts of the list of {}", self.noun);
        h.tag("nav", &[("class", "pager"), ("aria-label", &label)], |h| {
            if page > 0 {
                let url = format!("{}{}", self.url, page - 1);
                h.leaf("a", &[("href", &url), ("rel", "prev")], "Previous");
            }
            let (from, to) = (grouped(range.start as u64 + 1), grouped(range.end as u64));
            let total = grouped(self.total as u64);
            h.leaf(
                "span",
                &[("class", "quiet")],
                &format!("{from} to {to} of {total} {}", self.noun),
            );
            if range.end < self.total {
                let url = format!("{}{}", self.url, page + 1);
                h.leaf("a", &[("href", &url), ("rel", "next")], "Next");
            }
        });
    }
}

/// A field to search Services with.
pub(super) fn search(h: &mut Html, action: &str, wanted: &str, kept: &[(&str, &str)]) {
    h.tag(
        "form",
        &[("class", "search"), ("role", "search"), ("method", "get"), ("action", action)],
        |h| {
            for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) {
                h.void("input", &[("type", "hidden"), ("name", name), ("value", value)]);
            }
            h.leaf("label", &[("for", "q")], "Search Services");
            let attributes = [
                ("id", "q"),
                ("name", "q"),
                ("type", "search"),
                ("value", wanted),
                ("placeholder", "name, namespace, address"),
                ("autocomplete", "off"),
                ("spellcheck", "false"),
            ];
            h.void("input", &attributes);
            h.leaf("button", &[("type", "submit")], "Search");
        },
    );
}

/// `path?key=value&…`, without what is empty.
pub(super) fn url(path: &str, query: &[(&str, &str)]) -> String {
    let mut url = path.to_owned();
    let mut sign = '?';
    for (key, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
        url.push(sign);
        url.push_str(&format!("{key}={}", url_part(value)));
        sign = '&';
    }
    url
}

/// The same, ending where a page's number is to be put.
pub(super) fn url_of_page(path: &str, query: &[(&str, &str)]) -> String {
    url_of_part(path, query, "page")
}

/// The URL of a page with several lists, up to the number of the part of the list `key`.
pub(super) fn url_of_part(path: &str, query: &[(&str, &str)], key: &str) -> String {
    let url = url(path, query);
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{key}=")
}
