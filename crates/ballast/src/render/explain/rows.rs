//! A resource as rows: field, value, and what it is because of.

use super::{Names, because};
use crate::output::{Ink, Paint};
use crate::render::known;
use crate::render::table::lay_out;
use crate::render::tree::scalar;
use explain::causes::{ExplainedResource, Field, Part, Path, Share, Source, Step};
use serde_json::Value;
use std::collections::BTreeSet;

/// Elements of a list that are named before the others are only counted.
const NAMED: usize = 3;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// A part of the resource begins.
    Head {
        /// Its path.
        path: String,
        /// What it is because of.
        because: String,
    },
    /// A field.
    Field {
        /// Its path.
        path: String,
        /// Its value.
        value: String,
        /// What it is because of.
        because: String,
    },
}

impl Row {
    /// The same with short names.
    pub fn shortened(self, names: &Names) -> Self {
        match self {
            Self::Head { path, because } => Self::Head { path: names.shorten(&path), because },
            Self::Field { path, value, because } => {
                Self::Field { path: names.shorten(&path), value: names.shorten(&value), because }
            }
        }
    }
}

/// Rows below each other, their columns aligned.
pub(super) fn render(rows: &[Row], paint: Paint) -> String {
    let mut titles = ["  FIELD", "VALUE", "BECAUSE OF"].map(str::to_owned).to_vec();
    let explained = |row: &Row| match row {
        Row::Head { because, .. } | Row::Field { because, .. } => !because.is_empty(),
    };
    if !rows.iter().any(explained) {
        titles.pop();
    }
    let cells = rows.iter().filter_map(|row| match row {
        Row::Head { .. } => None,
        Row::Field { path, value, because } => {
            Some(vec![path.clone(), value.clone(), because.clone()])
        }
    });
    let lines = lay_out(&std::iter::once(titles).chain(cells).collect::<Vec<_>>());
    let mut lines = lines.iter().map(|cells| cells.join("  ").trim_end().to_owned());
    let mut text = String::new();
    if let Some(titles) = lines.next() {
        text.push_str(&format!("{}\n", paint.ink(Ink::Dim, titles)));
    }
    for row in rows {
        match row {
            Row::Head { path, because } if because.is_empty() => {
                text.push_str(&format!("  {}\n", paint.ink(Ink::Bold, path)));
            }
            Row::Head { path, because } => {
                let path = paint.ink(Ink::Bold, path);
                text.push_str(&format!("  {path}  because of {because}\n"));
            }
            Row::Field { .. } => {
                text.push_str(&lines.next().unwrap_or_default());
                text.push('\n');
            }
        }
    }
    text
}

/// All rows of a resource.
pub(super) fn rows(resource: &ExplainedResource) -> Vec<Row> {
    let mut rows = fields(&resource.fields, &Path::default(), "  ");
    let mut at = 0;
    while let Some(part) = resource.parts.get(at) {
        let same = alike(&resource.parts[at..]);
        if same > NAMED {
            rows.push(counted(&resource.parts[at..at + same]));
        } else {
            resource.parts[at..at + same].iter().for_each(|p| rows.extend(part_rows(p)));
        }
        at += same.max(1);
        let _ = part;
    }
    rows
}

fn part_rows(part: &Part) -> Vec<Row> {
    let path = shown_path(&part.path);
    let head = match part.share {
        Share::Own => path,
        Share::Added => format!("{path}, to which it adds"),
        Share::Used => format!("{path}, which it uses and which stands without it"),
    };
    let mut rows = vec![Row::Head { path: head, because: because(&part.sources) }];
    rows.extend(fields(&part.fields, &part.path, "    "));
    rows
}

fn sources_of(part: &Part) -> BTreeSet<&Source> {
    part.fields.iter().flat_map(|f| &f.sources).chain(&part.sources).collect()
}

/// How many parts from the first on are of the same list and come from the same.
fn alike(parts: &[Part]) -> usize {
    let Some(first) = parts.first() else { return 0 };
    let list = |part: &Part| part.path.0[..part.path.0.len() - 1].to_vec();
    let same = |part: &&Part| list(part) == list(first) && sources_of(part) == sources_of(first);
    parts.iter().take_while(same).count()
}

/// Many parts as one row.
fn counted(parts: &[Part]) -> Row {
    let names: Vec<String> = parts.iter().take(NAMED).map(|p| p.path.last().to_owned()).collect();
    let list = parts.first().map(|p| Path(p.path.0[..p.path.0.len() - 1].to_vec()));
    Row::Field {
        path: format!("  {}", shown_path(&list.unwrap_or_default())),
        value: format!("{}: {}, …", parts.len(), names.join(", ")),
        because: because(parts.first().map(sources_of).into_iter().flatten()),
    }
}

fn fields(fields: &[Field], from: &Path, indent: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut at = 0;
    while let Some(field) = fields.get(at) {
        let below = field.path.below(from);
        let Some(list) = list_in(&below) else {
            rows.push(row(field, &below, indent));
            at += 1;
            continue;
        };
        let same = fields[at..].iter();
        let same = same.take_while(|f| list_in(&f.path.below(from)).as_ref() == Some(&list));
        let same: Vec<&Field> = same.collect();
        at += same.len();
        rows.push(list_row(&same, &list, from, indent));
    }
    rows
}

/// The list that a field is in, if any.
fn list_in(path: &Path) -> Option<Path> {
    let at = path.0.iter().position(|step| matches!(step, Step::Item(_)))?;
    Some(Path(path.0[..at].to_vec()))
}

fn row(field: &Field, below: &Path, indent: &str) -> Row {
    let (mark, value) = match (&field.now, &field.wanted) {
        (Some(now), Some(wanted)) if now == wanted => ("", on_line(wanted)),
        (Some(now), Some(wanted)) => ("~ ", format!("{} → {}", on_line(now), on_line(wanted))),
        (None, Some(wanted)) => ("", on_line(wanted)),
        (Some(now), None) => ("- ", on_line(now)),
        (None, None) => ("", String::new()),
    };
    Row::Field {
        path: format!("{indent}{mark}{}", shown_path(below)),
        value,
        because: because(&field.sources),
    }
}

/// The elements of a list inside of a part, in one row.
fn list_row(fields: &[&Field], list: &Path, from: &Path, indent: &str) -> Row {
    let mut elements: Vec<(String, Vec<String>)> = Vec::new();
    for field in fields {
        let below = field.path.below(from).below(list);
        let name = match below.0.first() {
            Some(Step::Item(name) | Step::Field(name)) => name.to_string(),
            None => String::new(),
        };
        if elements.last().is_none_or(|(last, _)| *last != name) {
            elements.push((name.clone(), Vec::new()));
        }
        let value = field.wanted.as_ref().or(field.now.as_ref()).map(on_line).unwrap_or_default();
        let is_name = value == name || name.ends_with(&value) || value.ends_with(&name);
        if let Some((_, values)) = elements.last_mut().filter(|_| !is_name) {
            values.push(value);
        }
    }
    let shown: Vec<String> = elements
        .iter()
        .take(NAMED)
        .map(|(name, values)| match values.is_empty() {
            true => name.clone(),
            false => format!("{name} ({})", values.join(", ")),
        })
        .collect();
    let more = if elements.len() > NAMED { ", …" } else { "" };
    let sources: BTreeSet<&Source> = fields.iter().flat_map(|f| &f.sources).collect();
    Row::Field {
        path: format!("{indent}{}", shown_path(list)),
        value: format!("{}: {}{more}", elements.len(), shown.join(", ")),
        because: because(sources),
    }
}

/// Paths without the `properties` that Azure puts everywhere.
pub(super) fn shown_path(path: &Path) -> String {
    let is_plain = |step: &&Step| !matches!(step, Step::Field(name) if &**name == "properties");
    Path(path.0.iter().filter(is_plain).cloned().collect()).to_string()
}

/// A value on one line; of an id only what tells it from others of its kind.
fn on_line(value: &Value) -> String {
    let value = known::value(value);
    match &value {
        Value::String(text) if text.starts_with("/subscriptions/") => {
            let segments: Vec<&str> = text.rsplit('/').take(2).collect();
            segments.into_iter().rev().collect::<Vec<_>>().join("/")
        }
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        value => plain(value),
    }
}

/// Text without quotes, unless there is nothing to see.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.trim().is_empty() => text.clone(),
        value => scalar(value),
    }
}
