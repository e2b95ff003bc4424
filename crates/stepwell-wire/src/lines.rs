//! Reads line-based protocol messages, with a limit on their length.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;

use serde_json::Value;

use crate::request_id::RequestScan;

/// The longest message: enough for a prompt with a large file, and for the largest event with
/// escapes.
pub const LONGEST_MESSAGE: usize = 24 << 20;

/// A line of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageLine {
    /// A complete line, with its line break.
    Whole(Vec<u8>),
    /// A line over the limit, which is dropped.
    TooLong {
        /// The id of its request, if it could be found.
        id: Option<Value>,
    },
}

/// Reads lines until the input ends or fails, or `each` breaks.
pub fn read_messages(input: impl Read, each: impl FnMut(MessageLine) -> ControlFlow<()>) {
    read_bounded(input, LONGEST_MESSAGE, each);
}

fn read_bounded(
    input: impl Read,
    longest: usize,
    mut each: impl FnMut(MessageLine) -> ControlFlow<()>,
) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let bound = longest as u64 + 1;
        match input.by_ref().take(bound).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = line.last() == Some(&b'\n') || line.len() <= longest;
        let line = match is_whole {
            true => MessageLine::Whole(line),
            false => {
                let mut scan = RequestScan::default();
                scan.feed(&line);
                drop(line);
                if skip_line(&mut input, &mut scan).is_err() {
                    return;
                }
                MessageLine::TooLong { id: scan.id() }
            }
        };
        if each(line).is_break() {
            return;
        }
    }
}

/// Skips to the end of a line, looking only for the id.
fn skip_line(input: &mut impl BufRead, scan: &mut RequestScan) -> io::Result<()> {
    loop {
        let read = input.fill_buf()?;
        if read.is_empty() {
            return Ok(());
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(read.len(), |end| end + 1);
        scan.feed(&read[..length]);
        input.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, longest: usize, most: usize) -> Vec<MessageLine> {
        let mut lines = Vec::new();
        read_bounded(text.as_bytes(), longest, |line| {
            lines.push(line);
            if lines.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        lines
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
        let whole = |text: &str| MessageLine::Whole(text.into());
        let read = lines("12345\n123456\n123\n12345", 5, 9);
        let too_long = || MessageLine::TooLong { id: None };
        assert_eq!(read, [whole("12345\n"), too_long(), whole("123\n"), whole("12345")]);
        assert_eq!(lines("1\n2\n", 5, 1), [whole("1\n")]);
        assert_eq!(lines("123456", 5, 9), [too_long()]);
        let request = r#"{"method":"a","params":{},"id":7}"#;
        assert_eq!(lines(request, 5, 9), [MessageLine::TooLong { id: Some(7.into()) }]);
    }
}
