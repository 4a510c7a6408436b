//! Server-sent events with bounds: the bytes of an answer to its events.
//!
//! Decoding is `sse-stream`'s. Here are the caps, because a server may send anything for ever, and the sign of life,
//! because comments and half events are one too although no event comes of them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use sse_stream::SseByteStream;

/// The most bytes one event may have.
pub(crate) const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;
/// The most bytes one answer may have.
pub(crate) const MAX_TOTAL_BYTES: usize = 128 * 1024 * 1024;

/// One event with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The `event:` field; `None` = not sent.
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

/// How much one event and the whole may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    pub(crate) event_bytes: usize,
    pub(crate) total_bytes: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            event_bytes: MAX_EVENT_BYTES,
            total_bytes: MAX_TOTAL_BYTES,
        }
    }
}

type Inner = Pin<Box<dyn Stream<Item = Result<sse_stream::Sse, sse_stream::Error>> + Send>>;

/// The events of one answer, in order.
pub(crate) struct SseEvents {
    inner: Inner,
    /// Bytes since the last event.
    pending: Arc<AtomicUsize>,
}

impl SseEvents {
    /// Reads `bytes`; `alive` is called for each chunk that arrives.
    pub(crate) fn new<S, E>(bytes: S, caps: Caps, alive: impl Fn() + Send + 'static) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let pending = Arc::new(AtomicUsize::new(0));
        let counted = pending.clone();
        let mut total = 0_usize;
        let capped = bytes.map_err(io::Error::other).and_then(move |chunk| {
            alive();
            total = total.saturating_add(chunk.len());
            let event = counted.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
            let fits = total <= caps.total_bytes && event <= caps.event_bytes + chunk.len();
            std::future::ready(match fits {
                true => Ok(chunk),
                false => Err(io::Error::other("the answer is larger than we read")),
            })
        });
        Self {
            inner: Box::pin(SseByteStream::new(capped)),
            pending,
        }
    }

    /// The next event with data; `None` at the end of the stream.
    ///
    /// # Errors
    /// When the connection breaks, the bytes are no text or a cap is passed. Nothing follows an error.
    pub(crate) async fn next(&mut self) -> Option<Result<SseEvent, String>> {
        loop {
            let read = self.inner.next().await?;
            self.pending.store(0, Ordering::Relaxed);
            match read {
                Ok(sse_stream::Sse {
                    event,
                    data: Some(data),
                    ..
                }) => return Some(Ok(SseEvent { name: event, data })),
                Ok(_) => {}
                Err(error) => return Some(Err(chain(&error))),
            }
        }
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = inner.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn read(chunks: Vec<Vec<u8>>, caps: Caps) -> Vec<Result<SseEvent, String>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let chunks = chunks
                .into_iter()
                .map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk)));
            let mut events = SseEvents::new(futures_util::stream::iter(chunks), caps, || {});
            let mut seen = Vec::new();
            while let Some(event) = events.next().await {
                seen.push(event);
            }
            seen
        })
    }

    fn cut(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
        let mut rest = bytes;
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at((*size).clamp(1, rest.len()));
            chunks.push(chunk.to_vec());
            rest = after;
        }
        chunks
    }

    #[test]
    fn an_event_or_an_answer_too_large_is_an_error() {
        let caps = Caps {
            event_bytes: 64,
            total_bytes: 4096,
        };
        let endless = vec![b"data: xxxxxxxxxxxxxxxxxxxxxxxx".to_vec(); 8];
        assert!(read(endless, caps).last().unwrap().is_err());
        let small: Vec<Vec<u8>> = vec![b"data: x\n\n".to_vec(); 1000];
        let events = read(small, caps);
        assert!(events.last().unwrap().is_err());
        assert_eq!(events.len(), 4096 / 9 + 1);
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(sizes in proptest::collection::vec(1_usize..40, 1..8)) {
            for text in [
                include_str!("../captures/http/anthropic-text.sse"),
                include_str!("../captures/http/chat-completions-text.sse"),
            ] {
                let whole = read(vec![text.as_bytes().to_vec()], Caps::default());
                prop_assert_eq!(read(cut(text.as_bytes(), &sizes), Caps::default()), whole);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            sizes in proptest::collection::vec(1_usize..20, 1..5),
        ) {
            read(cut(&bytes, &sizes), Caps { event_bytes: 100, total_bytes: 300 });
        }
    }
}
