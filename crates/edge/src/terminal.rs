//! Text on its way to a terminal, in which names and values of others may stand.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Colours of our own, and of the log's lines. Whoever writes one into a name colours it, no more.
const COLORS: [&str; 12] = ["0", "1", "2", "3", "4", "9", "31", "32", "33", "34", "35", "36"];

/// The text as a terminal may have it.
///
/// # Guarantees
/// Control characters other than the end of a line, a tab and colours, and characters that change
/// the order in which others are shown, stand as `\uXXXX`: nothing moves the cursor, hides text or
/// passes for other text. A JSON document stays the same document.
#[must_use]
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_unsafe) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(color) = color(rest) {
            out.push_str(&rest[..color]);
            rest = &rest[color..];
            continue;
        }
        let mut characters = rest.chars();
        for c in characters.by_ref().take(1) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The text as one line of what a program writes: the ends of lines in it stand as `\u000a`, but
/// for one at its end. A name or value of others that is shown so does not pass for a line of ours.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    let (line, end) = text.strip_suffix('\n').map_or((text, ""), |line| (line, "\n"));
    match line.contains('\n') {
        true => Cow::Owned(line.replace('\n', "\\u000a") + end),
        false => Cow::Borrowed(text),
    }
}

fn is_unsafe(c: char) -> bool {
    let plain = matches!(c, '\n' | '\t');
    let marks = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let turning = marks || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !plain) || turning
}

/// How many bytes a colour at the beginning has.
fn color(text: &str) -> Option<usize> {
    let (code, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    COLORS.contains(&code).then_some(code.len() + 3)
}

/// Standard error, as [`safe`] and [`one_line`] make it. Each write is a whole line.
#[derive(Debug, Default)]
pub struct SafeError;

impl Write for SafeError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        io::stderr().write_all(safe(&one_line(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_text_is_escaped() {
        for (given, wanted) in [
            ("a\u{1b}]0;owned\u{7}b", "a\\u001b]0;owned\\u0007b"),
            ("\u{1b}[2J\u{1b}[1;1Hall is well", "\\u001b[2J\\u001b[1;1Hall is well"),
            ("/ok\rNothing to do", "/ok\\u000dNothing to do"),
            ("web\u{202e}nimda", "web\\u202enimda"),
            ("\u{9b}31mred", "\\u009b31mred"),
            ("\u{1b}[8mhidden", "\\u001b[8mhidden"),
            ("\u{1b}", "\\u001b"),
            ("\u{2066}a\u{2069}\u{7f}", "\\u2066a\\u2069\\u007f"),
        ] {
            assert_eq!(safe(given), wanted);
        }
    }

    #[test]
    fn a_line_stays_one() {
        for (given, wanted) in [
            ("a\nNothing is wrong.\n", "a\\u000aNothing is wrong.\n"),
            ("a\n\nb", "a\\u000a\\u000ab"),
            ("a\n", "a\n"),
            ("a", "a"),
        ] {
            assert_eq!(one_line(given), wanted);
        }
    }

    #[test]
    fn text_and_colours_stay() {
        for text in ["a\tb\nc", "größer → …", "\u{1b}[31mred\u{1b}[0m", "\u{1b}[1mbold\u{1b}[0m"]
        {
            assert_eq!(safe(text), text);
        }
    }

    #[test]
    fn json_stays_the_same_document() {
        let value = serde_json::json!({ "a\u{9b}": "x\u{202e}y\u{1b}" });
        let text = value.to_string();
        let back: serde_json::Value = serde_json::from_str(&safe(&text)).expect("it is JSON");
        assert_eq!(back, value);
    }
}
