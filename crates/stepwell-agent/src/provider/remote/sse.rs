//! Server-sent events, parsed as browsers do: unknown fields are ignored, and chunks may end
//! anywhere.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The `event` field.
    pub(super) name: String,
    /// The `data` fields, joined.
    pub(super) data: String,
}

/// A parser of an event stream.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    current: Event,
    /// Was a line read? A byte order mark may precede only the first one.
    begun: bool,
    /// Was the last byte a carriage return? Then a line feed after it does not end another line.
    returned: bool,
    over: bool,
    /// The first line that is not a field.
    stray: Option<String>,
}

impl Events {
    /// Adds bytes, and returns the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut whole = Vec::new();
        for &byte in bytes {
            let returned = std::mem::replace(&mut self.returned, byte == b'\r');
            match byte {
                b'\n' if returned => {}
                b'\n' | b'\r' => whole.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        whole
    }

    /// Ends the stream, and returns an event without a closing blank line.
    pub(super) fn end(&mut self) -> Vec<Event> {
        self.over = true;
        self.end_line().or_else(|| self.end_line()).into_iter().collect()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// A line that is not a field: the stream is perhaps not an event stream.
    pub(super) fn stray(&self) -> Option<&str> {
        self.stray.as_deref()
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = match std::mem::replace(&mut self.begun, true) {
            true => &*line,
            false => line.strip_prefix('\u{feff}').unwrap_or(&line),
        };
        if line.is_empty() {
            return Some(std::mem::take(&mut self.current)).filter(|it| !it.data.is_empty());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.current.name),
            "data" if self.current.data.is_empty() => value.clone_into(&mut self.current.data),
            "data" => {
                self.current.data.push('\n');
                self.current.data.push_str(value);
            }
            // A comment has no field name.
            "" | "id" | "retry" => {}
            _ if self.stray.is_none() => self.stray = Some(line.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a stream as `name=data`, parsed at once and byte by byte.
    fn read(stream: &str) -> Vec<String> {
        let shown = |events: Vec<Event>| -> Vec<String> {
            events.into_iter().map(|it| format!("{}={}", it.name, it.data)).collect()
        };
        let mut events = Events::default();
        let mut at_once = events.push(stream.as_bytes());
        at_once.extend(events.end());
        let mut events = Events::default();
        let mut by_byte: Vec<Event> =
            stream.as_bytes().chunks(1).flat_map(|byte| events.push(byte)).collect();
        by_byte.extend(events.end());
        assert_eq!(at_once, by_byte);
        shown(at_once)
    }

    #[test]
    fn events_are_read_whatever_their_lines_end_with() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = ["event: a", "data: 1", "", ": alive", "", "data:2", "data: 3", "", ""];
            assert_eq!(read(&stream.join(end)), ["a=1", "=2\n3"], "{end:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        assert_eq!(read("\u{feff}data: 1\n\nretry: x\nfoo\nbar: 2\ndata: é\n\n"), ["=1", "=é"]);
        assert_eq!(read("\n\nevent: only\n\n: alive\n\n"), [""; 0]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(read("data: 1\n\ndata: [DONE]"), ["=1", "=[DONE]"]);
        assert_eq!(read("data: 1\n\ndata: [DONE]\n"), ["=1", "=[DONE]"]);
    }
}
