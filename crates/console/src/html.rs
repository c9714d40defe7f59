//! Writing HTML so that nothing can get out of its place.
//!
//! Names of tags and attributes are literals of the program; texts and values are escaped when they
//! are written. There is no way to write markup as text.

use std::fmt::Write as _;

/// Attributes: name and value.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

/// HTML being written.
#[derive(Debug, Default)]
pub struct Html {
    text: String,
}

impl Html {
    /// A document of the current standard.
    #[must_use]
    pub fn document() -> Self {
        Self { text: "<!doctype html>\n".to_owned() }
    }

    /// An element with what `inner` writes into it.
    pub fn tag(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        inner: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes);
        inner(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// An element that holds a text.
    pub fn leaf(&mut self, name: &'static str, attributes: Attributes<'_>, text: &str) {
        self.tag(name, attributes, |h| h.text(text));
    }

    /// An element that never holds anything.
    pub fn void(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.open(name, attributes);
    }

    /// A text.
    pub fn text(&mut self, text: &str) {
        escape(&mut self.text, text);
    }

    /// A number.
    pub fn number(&mut self, number: u64) {
        self.text(&grouped(number));
    }

    fn open(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(name);
        for (key, value) in attributes {
            self.text.push(' ');
            self.text.push_str(key);
            self.text.push_str("=\"");
            escape(&mut self.text, value);
            self.text.push('"');
        }
        self.text.push('>');
    }

    /// What was written.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // Marks that turn the direction of writing could make a page say something else.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// Digits in groups of three, parted by thin blanks.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + 8);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// A part of a path, or a value of a query, as it stands in a URL.
#[must_use]
pub fn url_part(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            // Writing to a String cannot fail.
            byte => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_cannot_become_markup() {
        let mut h = Html::default();
        let evil = "\"><script>alert('x')</script>&\u{202e}\u{1b}";
        h.tag("a", &[("href", evil)], |h| h.text(evil));
        let safe = "&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\u{fffd}\u{fffd}";
        assert_eq!(h.into_text(), format!("<a href=\"{safe}\">{safe}</a>"));
    }

    #[test]
    fn parts_of_urls_are_percent_encoded() {
        assert_eq!(url_part("a b/ä?&"), "a%20b%2F%C3%A4%3F%26");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([grouped(7), grouped(999), grouped(1_000)], ["7", "999", "1\u{2009}000"]);
    }
}
