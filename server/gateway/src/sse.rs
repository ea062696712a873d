//! Server-sent events from bytes.
//!
//! A state machine without input or output of its own: bytes go in with [`SseParser::push`], events come out of
//! [`SseParser::next_event`]. Any split of the same bytes gives the same events. An unfinished last event is dropped.

use crate::limits::{MAX_SSE_EVENT_BYTES, MAX_SSE_LINE_BYTES};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; empty when there was none.
    pub name: String,
    /// The `data` lines, joined by a line feed.
    pub data: String,
}

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line is longer than the limit.
    #[error("a line of the event stream is longer than {limit} bytes")]
    LineTooLong {
        /// Limit, bytes.
        limit: usize,
    },
    /// An event holds more data than the limit.
    #[error("an event of the event stream holds more than {limit} bytes")]
    EventTooLong {
        /// Limit, bytes.
        limit: usize,
    },
    /// A line is not UTF-8.
    #[error("the event stream is not valid UTF-8")]
    NotUtf8,
}

impl SseError {
    /// Stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::LineTooLong { .. } => "sse-line-too-long",
            Self::EventTooLong { .. } => "sse-event-too-long",
            Self::NotUtf8 => "sse-not-utf8",
        }
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The parser. After an error it stays broken.
#[derive(Debug)]
pub struct SseParser {
    /// Bytes not yet read as lines, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// How far `buffer` was searched for a line end.
    searched: usize,
    /// The last line ended in CR at the very end of the buffer, so a LF coming next belongs to it.
    skip_line_feed: bool,
    first_line: bool,
    name: String,
    data: String,
    has_data: bool,
    line_limit: usize,
    event_limit: usize,
    broken: Option<SseError>,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl SseParser {
    /// A parser with the limits of this crate.
    pub fn new() -> Self {
        Self::with_limits(MAX_SSE_LINE_BYTES, MAX_SSE_EVENT_BYTES)
    }

    /// A parser with other limits, bytes.
    pub fn with_limits(line_limit: usize, event_limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            skip_line_feed: false,
            first_line: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            line_limit,
            event_limit,
            broken: None,
        }
    }

    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event; `None` when more bytes are needed.
    ///
    /// # Errors
    /// A line or event over its limit, or a line that is not UTF-8.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, SseError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let next = self.read_event();
        self.broken = next.as_ref().err().copied();
        next
    }

    fn read_event(&mut self) -> Result<Option<SseEvent>, SseError> {
        while let Some((from, to)) = self.next_line()? {
            let line = std::str::from_utf8(&self.buffer[from..to]).map_err(|_| SseError::NotUtf8)?;
            if line.is_empty() {
                let event = SseEvent { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) };
                if std::mem::take(&mut self.has_data) {
                    return Ok(Some(event));
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => {
                    if self.data.len() + value.len() + 1 > self.event_limit {
                        return Err(SseError::EventTooLong { limit: self.event_limit });
                    }
                    if self.has_data {
                        self.data.push('\n');
                    }
                    self.data.push_str(value);
                    self.has_data = true;
                }
                "event" => value.clone_into(&mut self.name),
                // Comments (an empty field name), `id`, `retry` and unknown fields say nothing about a reply.
                _ => {}
            }
        }
        Ok(None)
    }

    /// Where the next whole line lies in the buffer, without its end.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, SseError> {
        if self.skip_line_feed && self.start < self.buffer.len() {
            self.skip_line_feed = false;
            if self.buffer[self.start] == b'\n' {
                self.start += 1;
                self.searched = self.searched.max(self.start);
            }
        }
        let Some(offset) = memchr::memchr2(b'\r', b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return self.check_line(self.searched - self.start).map(|()| None);
        };
        let end = self.searched + offset;
        self.check_line(end - self.start)?;
        let mut from = self.start;
        self.start = end + 1;
        if self.buffer[end] == b'\r' {
            match self.buffer.get(end + 1) {
                Some(b'\n') => self.start += 1,
                Some(_) => {}
                None => self.skip_line_feed = true,
            }
        }
        self.searched = self.start;
        if std::mem::take(&mut self.first_line) && self.buffer[from..end].starts_with(BYTE_ORDER_MARK) {
            from += BYTE_ORDER_MARK.len();
        }
        Ok(Some((from, end)))
    }

    fn check_line(&self, length: usize) -> Result<(), SseError> {
        if length > self.line_limit { Err(SseError::LineTooLong { limit: self.line_limit }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, SseError> {
        let mut parser = SseParser::with_limits(64, 128);
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk);
            while let Some(event) = parser.next_event()? {
                events.push((event.name, event.data));
            }
        }
        Ok(events)
    }

    fn data(chunks: &[&[u8]]) -> Vec<String> {
        parse(chunks).expect("valid").into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn every_line_end_closes_a_line() {
        assert_eq!(data(&[b"data: a\n\ndata: b\r\n\r\ndata: c\r\r"]), ["a", "b", "c"]);
        assert_eq!(data(&[b"data: a\r", b"\n\r", b"\ndata: b\r", b"\r"]), ["a", "b"]);
    }

    #[test]
    fn a_carriage_return_at_the_end_closes_the_event_at_once() {
        assert_eq!(data(&[b"data: a\r\r"]), ["a"]);
    }

    #[test]
    fn fields_are_read_as_the_format_says() {
        assert_eq!(data(&[b"data:a\ndata:  b\ndata\n\n"]), ["a\n b\n"]);
        assert_eq!(data(&[b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"]), ["a"]);
        assert_eq!(data(&[b": comment\n\nid: 4\nretry: 10\nwhat: ever\n\ndata: a\n\n"]), ["a"]);
        assert_eq!(
            parse(&[b"event: error\ndata: x\n\nevent: lost\n\ndata: y\n\n"]).expect("valid"),
            [("error".to_owned(), "x".to_owned()), (String::new(), "y".to_owned())]
        );
    }

    #[test]
    fn an_unfinished_event_is_dropped() {
        assert_eq!(data(&[b"data: a\n\ndata: b\n"]), ["a"]);
        assert_eq!(data(&[b"data: a"]), [""; 0]);
    }

    #[test]
    fn limits_hold_and_errors_stay() {
        assert_eq!(parse(&[&[b'x'; 65]]), Err(SseError::LineTooLong { limit: 64 }));
        assert_eq!(parse(&[&[b'x'; 64], b"\n"]), Ok(Vec::new()));
        let line = format!("data: {}\n", "y".repeat(50));
        assert_eq!(parse(&[line.repeat(3).as_bytes()]), Err(SseError::EventTooLong { limit: 128 }));
        let mut parser = SseParser::new();
        parser.push(b"data: \xff\n\n");
        assert_eq!(parser.next_event(), Err(SseError::NotUtf8));
        parser.push(b"data: a\n\n");
        assert_eq!(parser.next_event(), Err(SseError::NotUtf8));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["data: ", "data:", "event: ", "é", "好", "x", ":", " ", "\n", "\r", "\r\n", "\n\n", "\u{feff}"]),
                0..60,
            ),
            cuts in prop::collection::vec(0usize..400, 0..20),
        ) {
            let text = pieces.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = parse(&[bytes]);
            prop_assert_eq!(&parse(&chunks), &whole);
            prop_assert_eq!(&parse(&single), &whole);
        }

        #[test]
        fn any_bytes_are_survived(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8)) {
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let _ = parse(&chunks);
        }
    }
}
