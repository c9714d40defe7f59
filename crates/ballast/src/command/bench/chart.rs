//! Plots as SVG: lines over two logarithmic axes, readable on a light and on a dark page.

use super::table::grouped;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Left, right, top, bottom.
const MARGIN: [f64; 4] = [84.0, 176.0, 44.0, 56.0];
/// Colours that differ in lightness, too.
const COLORS: [&str; 4] = ["#0b6bcb", "#c2410c", "#15803d", "#7c3aed"];
const DARK: [&str; 4] = ["#60a5fa", "#fb923c", "#4ade80", "#c4b5fd"];

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// What was measured.
    Solid,
    /// What it is held against.
    Dashed,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is of.
    pub name: String,
    /// Which of the colours.
    pub color: usize,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Points; those at or below 0 have no place on a logarithmic axis and are left out.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// One line.
    #[must_use]
    pub fn new(name: &str, color: usize, stroke: Stroke, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), color, stroke, points }
    }
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The file's name, without its ending.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What goes to the right, with its unit.
    pub x: &'static str,
    /// What goes up, with its unit.
    pub y: &'static str,
    /// The lines.
    pub series: Vec<Series>,
}

/// Powers of ten around some values.
struct Scale {
    low: i32,
    high: i32,
    from: f64,
    to: f64,
}

impl Scale {
    fn around(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match least.is_finite() && most.is_finite() {
            true => (least.log10().floor() as i32, most.log10().ceil() as i32),
            false => (0, 1),
        };
        Self { low, high: high.max(low + 1), from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        (self.low..=self.high).map(|power| 10_f64.powi(power))
    }
}

impl Chart {
    /// The picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let [left, right, top, bottom] = MARGIN;
        let points = self.series.iter().flat_map(|s| s.points.iter().copied());
        let points = points.filter(|(x, y)| *x > 0.0 && *y > 0.0);
        let x = Scale::around(points.clone().map(|p| p.0), left, WIDTH - right);
        let y = Scale::around(points.map(|p| p.1), HEIGHT - bottom, top);
        let mut svg = head(self.title);
        axes(&mut svg, &x, &y);
        let middle = (left + WIDTH - right) / 2.0;
        let _ = write!(
            svg,
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            HEIGHT - 14.0,
            escape(self.x),
            f64::midpoint(top, HEIGHT - bottom),
            escape(self.y)
        );
        for (at, series) in self.series.iter().enumerate() {
            draw(&mut svg, series, at, &x, &y);
        }
        svg + "</svg>\n"
    }
}

fn head(title: &str) -> String {
    let mut style = String::from(
        "text{font:13px system-ui,sans-serif;fill:#1f2937}.t{font-weight:600;font-size:15px}\
         .g{stroke:#d1d5db}rect{fill:#fff}path,line{fill:none}",
    );
    let mut dark = String::from("text{fill:#e5e7eb}.g{stroke:#374151}rect{fill:#111827}");
    for (at, (light, other)) in COLORS.iter().zip(DARK).enumerate() {
        let _ = write!(style, ".c{at}{{stroke:{light}}}circle.c{at}{{fill:{light}}}");
        let _ = write!(dark, ".c{at}{{stroke:{other}}}circle.c{at}{{fill:{other}}}");
    }
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         role=\"img\">\n<title>{title}</title>\n<style>{style}\
         @media (prefers-color-scheme:dark){{{dark}}}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"t\" x=\"{}\" y=\"24\">{title}</text>\n",
        MARGIN[0]
    )
}

fn axes(svg: &mut String, x: &Scale, y: &Scale) {
    for tick in x.ticks() {
        let at = x.at(tick);
        let _ = write!(
            svg,
            "<line class=\"g\" x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>\n\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            y.from,
            y.to,
            y.from + 18.0,
            label(tick)
        );
    }
    for tick in y.ticks() {
        let at = y.at(tick);
        let _ = write!(
            svg,
            "<line class=\"g\" x1=\"{:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            x.from,
            x.to,
            x.from - 8.0,
            at + 4.0,
            label(tick)
        );
    }
}

fn draw(svg: &mut String, series: &Series, at: usize, x: &Scale, y: &Scale) {
    let color = series.color % COLORS.len();
    let places: Vec<(f64, f64)> = (series.points.iter())
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .map(|(a, b)| (x.at(*a), y.at(*b)))
        .collect();
    let path: Vec<String> = places.iter().map(|(a, b)| format!("{a:.1} {b:.1}")).collect();
    let dashes = match series.stroke {
        Stroke::Solid => "",
        Stroke::Dashed => " stroke-dasharray=\"6 4\"",
    };
    if !path.is_empty() {
        let _ = writeln!(
            svg,
            "<path class=\"c{color}\" stroke-width=\"2\"{dashes} d=\"M{}\"/>",
            path.join("L")
        );
    }
    for (a, b) in &places {
        let _ = writeln!(svg, "<circle class=\"c{color}\" cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"3\"/>");
    }
    let (left, line) = (WIDTH - MARGIN[1] + 16.0, MARGIN[2] + 10.0 + 22.0 * at as f64);
    let _ = write!(
        svg,
        "<line class=\"c{color}\" stroke-width=\"2\"{dashes} x1=\"{left}\" y1=\"{line}\" \
         x2=\"{}\" y2=\"{line}\"/>\n<text x=\"{}\" y=\"{}\">{}</text>\n",
        left + 22.0,
        left + 28.0,
        line + 4.0,
        escape(&series.name)
    );
}

fn label(tick: f64) -> String {
    if tick < 1.0 { format!("{tick}") } else { grouped(tick as u64) }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> String {
        let name = "a < b".to_owned();
        let series = vec![Series { name, color: 0, stroke: Stroke::Dashed, points }];
        Chart { name: "n", title: "T", x: "Services", y: "time (s)", series }.svg()
    }

    #[test]
    fn points_are_where_their_powers_of_ten_are() {
        let svg = chart(vec![(10.0, 1.0), (100.0, 10.0), (1_000.0, 100.0)]);
        // Left edge and bottom; the middle of both; right edge and top.
        assert!(svg.contains("d=\"M84.0 344.0L314.0 194.0L544.0 44.0\""), "{svg}");
        assert!(svg.contains(">1,000</text>") && svg.contains(">time (s)</text>"), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("prefers-color-scheme:dark"), "{svg}");
    }

    #[test]
    fn nothing_has_no_place_and_breaks_nothing() {
        let svg = chart(vec![(10.0, 0.0)]);
        assert!(!svg.contains("<path") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
