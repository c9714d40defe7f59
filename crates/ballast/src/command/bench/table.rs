//! A table for a terminal and for a page.

use crate::render::table::lay_out;

/// Columns with their units, and rows.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Headings.
    pub columns: Vec<&'static str>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Columns that line up.
    #[must_use]
    pub fn text(&self) -> String {
        let head = self.columns.iter().map(|column| (*column).to_owned()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(self.rows.clone()).collect();
        let lines = lay_out(&rows).into_iter().map(|row| row.join("  ").trim_end().to_owned());
        lines.map(|line| line + "\n").collect()
    }

    /// As Markdown has it.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let head: Vec<String> = self.columns.iter().map(|column| (*column).to_owned()).collect();
        let rule = vec!["---".to_owned(); self.columns.len()];
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&head) + &line(&rule) + &rows
    }
}

/// Milliseconds as seconds.
#[must_use]
pub fn seconds(ms: u64) -> String {
    format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10)
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many times the least something is; nothing where the least is nothing.
#[must_use]
pub fn factor(value: u64, least: u64) -> String {
    match least {
        0 => "–".to_owned(),
        least => {
            let hundredths = (value * 100 + least / 2) / least;
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(seconds(4_805), "4.80 s");
        assert_eq!((grouped(7), grouped(1_005)), ("7".to_owned(), "1,005".to_owned()));
        assert_eq!(grouped(150_000), "150,000");
        assert_eq!((factor(304, 300), factor(5, 0)), ("1.01".to_owned(), "–".to_owned()));
    }
}
