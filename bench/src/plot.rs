//! A plot of costs against the length of a history, as an SVG that reads on light and dark pages.

use std::fmt::Write as _;
use std::time::Duration;

use crate::show;

/// One line of the plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it costs.
    pub name: &'static str,
    /// The length of the history, and the cost at that length.
    pub points: Vec<(usize, Duration)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
/// How high a line of text is.
const LINE: f64 = 16.0;

/// Colours that are distinct also for colour-blind readers, on light and on dark.
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

/// Both axes are logarithmic. A flat line means a constant cost.
struct Axes {
    lengths: (f64, f64),
    micros: (f64, f64),
}

impl Axes {
    fn of(series: &[Series]) -> Self {
        let points = || series.iter().flat_map(|it| &it.points);
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(it), high.max(it)))
        };
        let lengths = bounds(&mut points().map(|it| log_of_length(it.0)));
        let (low, high) = bounds(&mut points().map(|it| log_of_time(it.1)));
        Self { lengths, micros: (low.floor(), high.ceil()) }
    }

    fn x(&self, length: f64) -> f64 {
        let (low, high) = self.lengths;
        LEFT + (length - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, micros: f64) -> f64 {
        let (low, high) = self.micros;
        HEIGHT - BOTTOM - (micros - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn log_of_length(length: usize) -> f64 {
    (length as f64).log10()
}

fn log_of_time(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).log10()
}

/// Draws the lines.
#[must_use]
pub fn svg(title: &str, across: &str, series: &[Series]) -> String {
    let axes = Axes::of(series);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{title}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    grid(&mut svg, &axes, across);
    let mut labels: Vec<f64> = Vec::new();
    for (it, colour) in series.iter().zip(COLOURS) {
        let at = |(length, time): &(usize, Duration)| {
            (axes.x(log_of_length(*length)), axes.y(log_of_time(*time)))
        };
        let points: Vec<String> =
            it.points.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            points.join(" ")
        );
        for point in &it.points {
            let (x, y) = at(point);
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        if let Some(last) = it.points.last() {
            let ((x, mut y), time) = (at(last), show(last.1));
            // Lines that end close together have labels below each other.
            while let Some(near) = labels.iter().find(|other| (*other - y).abs() < LINE) {
                y = near + LINE;
            }
            labels.push(y);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}, {time}</text>",
                x + 8.0,
                y + 4.0,
                it.name
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// A line for each power of ten.
fn grid(svg: &mut String, axes: &Axes, across: &str) {
    let mut micros = axes.micros.0;
    while micros <= axes.micros.1 {
        let y = axes.y(micros);
        let label = show(Duration::from_secs_f64(10f64.powf(micros) / 1e6));
        let label = label.replace(".0 ", " ").replace(".00 ", " ");
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ccc\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{label}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0
        );
        micros += 1.0;
    }
    let mut length = axes.lengths.0;
    while length <= axes.lengths.1 + 0.01 {
        let x = axes.x(length);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{:.0}</text>",
            HEIGHT - BOTTOM + 18.0,
            10f64.powf(length)
        );
        length += 1.0;
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{across}</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 10.0
    );
}
