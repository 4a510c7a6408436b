//! A model that speaks word by word at a pace of its own, on any number of turns at once, and notes when each ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use gateway_core::event::{Event, TokenUsage};
use gateway_core::turn::{Answer, AttemptEnd};
use parking_lot::Mutex;
use providers::{AttemptHandle, AttemptRequest, Health, Provider};
use tokio::sync::watch;

/// How it answers one prompt: its words in order.
type Words = Arc<dyn Fn(&str) -> Vec<String> + Send + Sync>;

/// See the module. Clones share everything.
#[derive(Clone)]
pub struct Talker {
    words: Words,
    pace: Duration,
    /// Nobody speaks before so many have been asked, so that all of them stream at once.
    chorus: usize,
    asked: watch::Sender<usize>,
    ended: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl Talker {
    /// One that says `words(prompt)`, one word per `pace`.
    pub fn new(
        pace: Duration,
        chorus: usize,
        words: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            words: Arc::new(words),
            pace,
            chorus,
            asked: watch::Sender::new(0),
            ended: Arc::default(),
        }
    }

    /// When each prompt was answered to its end.
    pub fn ended(&self) -> BTreeMap<String, Instant> {
        self.ended.lock().clone()
    }

    /// How many prompts there were.
    pub fn asked(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until all of the chorus have been asked.
    pub async fn all_asked(&self) {
        let mut asked = self.asked.subscribe();
        let all = asked.wait_for(|asked| *asked >= self.chorus).await;
        all.expect("self holds the sender, so the channel is open");
    }
}

#[async_trait]
impl Provider for Talker {
    fn start(&self, request: AttemptRequest) -> AttemptHandle {
        let talker = self.clone();
        AttemptHandle::spawn(move |events, stop| async move {
            let AttemptRequest { prompt, go, .. } = request;
            if go.await.is_err() {
                return AttemptEnd::Stopped;
            }
            talker.asked.send_modify(|asked| *asked += 1);
            talker.all_asked().await;
            let mut pace = tokio::time::interval(talker.pace);
            let mut said = String::new();
            for word in (talker.words)(&prompt) {
                tokio::select! {
                    _ = pace.tick() => {}
                    () = stop.stopped() => return AttemptEnd::Stopped,
                }
                said.push_str(&word);
                let text = Event::Text {
                    block: 0,
                    delta: word,
                };
                if events.send(text).await.is_err() {
                    return AttemptEnd::Stopped;
                }
            }
            talker.ended.lock().insert(prompt, Instant::now());
            AttemptEnd::Answered(Answer {
                text: said,
                usage: TokenUsage::default(),
            })
        })
    }

    fn keeps_sessions(&self) -> bool {
        false
    }

    async fn session_holds(
        &self,
        _: &gateway_core::ids::ProviderSessionId,
        _: &str,
    ) -> Option<bool> {
        None
    }

    async fn health(&self) -> Health {
        Health::Ready { version: None }
    }
}
