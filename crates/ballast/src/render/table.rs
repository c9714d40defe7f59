//! Columns that line up.

use edge::terminal::one_line;

/// Lays out rows; the last column is not padded, and a cell stays on its line.
#[must_use]
pub fn lay_out(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let one_line = |cell: &String| one_line(cell).into_owned();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(one_line).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    rows.iter()
        .map(|row| {
            row.iter()
                .enumerate()
                .map(|(at, cell)| {
                    let width = if at + 1 == row.len() { 0 } else { widths[at] };
                    format!("{cell:<width$}")
                })
                .collect()
        })
        .collect()
}
