//! The common parts of the benchmarks: measuring, and a table of ratios.
//!
//! The machines that run this are noisy, so absolute times are not judged: each operation is
//! measured beside a bare reference in the same run, turn by turn, and the ratio of the medians
//! counts.
#![expect(clippy::print_stdout, reason = "a benchmark's table is its answer")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

pub mod plot;

use std::time::{Duration, Instant};

/// The same one as the command's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durations of one operation, sorted.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Measures `work` this many times, after a tenth as many unmeasured.
    pub fn of(count: usize, mut work: impl FnMut()) -> Self {
        (0..count / 10).for_each(|_| work());
        Self::from_samples((0..count).map(|_| timed(&mut work)))
    }

    /// Measures two operations in turns of `turn`, so that a noisy moment hits both.
    pub fn of_both(
        turns: usize,
        turn: usize,
        mut a: impl FnMut(),
        mut b: impl FnMut(),
    ) -> (Self, Self) {
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        for n in 0..turns {
            let measured = n > 0;
            for _ in 0..turn {
                let time = timed(&mut a);
                of_a.extend(measured.then_some(time));
            }
            for _ in 0..turn {
                let time = timed(&mut b);
                of_b.extend(measured.then_some(time));
            }
        }
        (Self::from_samples(of_a), Self::from_samples(of_b))
    }

    /// Sorts samples.
    pub fn from_samples(samples: impl IntoIterator<Item = Duration>) -> Self {
        let mut samples: Vec<Duration> = samples.into_iter().collect();
        samples.sort_unstable();
        Self(samples)
    }

    /// The time that this share of them stayed under.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into a few thousand samples"
        )]
        let index = (last as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or_default()
    }

    /// The median.
    #[must_use]
    pub fn p50(&self) -> Duration {
        self.quantile(0.5)
    }
}

/// The duration of `work`.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// One quotient.
#[must_use]
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-12)
}

/// A table of results, printed as it grows.
#[derive(Debug)]
pub struct Table;

impl Table {
    /// Prints the heading.
    #[must_use]
    pub fn begin() -> Self {
        println!("| operation | p50 | p99 | beside | ratio | goal |");
        println!("|---|---|---|---|---|---|");
        Self
    }

    /// One operation beside its reference.
    pub fn row(&self, what: &str, times: &Times, beside: (&str, &Times), goal: &str) {
        println!(
            "| {what} | {} | {} | {} {} | {:.2}x | {goal} |",
            show(times.p50()),
            show(times.quantile(0.99)),
            beside.0,
            show(beside.1.p50()),
            ratio(times.p50(), beside.1.p50()),
        );
    }

    /// A figure that is not a time.
    pub fn figure(&self, what: &str, figure: &str, beside: &str, goal: &str) {
        println!("| {what} | {figure} | | {beside} | | {goal} |");
    }
}

/// A duration with three digits.
#[must_use]
pub fn show(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1000.0) }
}
