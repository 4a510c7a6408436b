//! The terminal: one person, one conversation, nothing that could be edited or pressed.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::{InboundId, SessionKey};
use gateway_core::message::{Content, Inbound, Origin, ReplyTarget, Sender, Standing};
use gateway_host::Gateway;
use parking_lot::Mutex;
use platforms::console::{self, Console, ConsoleLine, WriterTerminal, parse_line};
use platforms::escape::Shape;

use super::stage::profile;
use super::{Answered, ChatUnderTest, Shown, Spot, Stage, Who};

/// Stands above what only the asker sees.
const PRIVATE: &str = "(only you see this)";

/// What was printed.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal with a gateway behind it.
pub struct ConsoleRoom {
    gateway: Option<Gateway>,
    paper: Paper,
    stage: Stage,
}

impl ConsoleRoom {
    async fn start(&mut self) {
        let mut parts = self.stage.parts().await;
        let terminal = Box::new(WriterTerminal(self.paper.clone()));
        parts.platforms.push(Arc::new(Console::new(terminal)));
        self.gateway = Some(Gateway::start(parts).await.expect("a gateway starts"));
    }

    fn printed(&self) -> String {
        String::from_utf8(self.paper.0.lock().clone()).expect("the console prints text")
    }

    async fn type_line(&self, line: &str) {
        let content = match parse_line(line).expect("a line") {
            ConsoleLine::Text(text) => Content::Text(text),
            ConsoleLine::Command { name, args } => Content::Command { name, args },
            other => panic!("a line is no {other:?}"),
        };
        let inbound = Inbound {
            id: InboundId::new(uuid::Uuid::now_v7().to_string()),
            profile: profile(),
            session: SessionKey::new("agent:main:console:local"),
            sender: Sender {
                id: "local".into(),
                name: "you".into(),
                standing: Standing::Operator,
            },
            origin: Origin::Human,
            target: ReplyTarget {
                platform: console::NAME.into(),
                address: "local".into(),
            },
            received_at: self.stage.now(),
            content,
        };
        let gateway = self.gateway.as_ref().expect("the gateway runs");
        gateway.receive(inbound).await;
    }
}

/// The whole paper as one message: nothing on it is ever taken back.
fn shown(text: String) -> Shown {
    Shown {
        id: String::new(),
        private: text.contains(PRIVATE),
        raw: text.clone(),
        text,
        edits: 0,
        earlier: Vec::new(),
        at: None,
        pinged: false,
        buttons: Vec::new(),
        files: Vec::new(),
    }
}

#[async_trait]
impl ChatUnderTest for ConsoleRoom {
    const NAME: &'static str = "console";
    const SKIPS: &'static [(&'static str, &'static str)] = &[
        (
            "a_very_long_answer_ends_with_a_file",
            "a terminal has no bound, so it needs no file",
        ),
        (
            "a_stream_is_few_edits_and_one_final_text",
            "nothing can be edited: text grows by what is new",
        ),
        ("model_text_pings_nobody", "a terminal notifies nobody"),
        (
            "everything_delivered_twice_is_answered_once",
            "a terminal never delivers a line twice",
        ),
        (
            "a_button_pressed_twice_acts_once",
            "a printed line cannot be pressed; the words say what to type",
        ),
        (
            "a_button_works_after_a_restart",
            "a printed line cannot be pressed; the words say what to type",
        ),
        (
            "what_is_asked_in_a_thread_is_answered_there",
            "there is one conversation",
        ),
        (
            "nothing_waits_for_a_slow_model",
            "nothing has to be acknowledged",
        ),
        (
            "a_rate_limit_in_a_stream_loses_nothing",
            "a terminal has no limits",
        ),
        (
            "a_stranger_gets_one_line_and_no_model",
            "whoever sits at the terminal is its owner",
        ),
        ("a_denied_channel_gets_silence", "there is one conversation"),
    ];

    fn shape() -> Option<Shape> {
        None
    }

    async fn open(subscriptions: &[&str]) -> Self {
        let mut room = Self {
            gateway: None,
            paper: Paper::default(),
            stage: Stage::new(subscriptions),
        };
        room.start().await;
        room
    }

    fn stage(&self) -> &Stage {
        &self.stage
    }

    async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    async fn stop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.shutdown().await;
        }
    }

    fn id(&self, _: Who) -> String {
        String::from("local")
    }

    async fn say(&self, _: Spot, _: Who, text: &str, _: bool) -> String {
        self.type_line(text).await;
        String::new()
    }

    async fn command(&self, _: Who, line: &str) -> Answered {
        let before = self.printed().len();
        self.type_line(&format!("/{line}")).await;
        Answered {
            shown: shown(self.printed().split_off(before)),
            acked: None,
        }
    }

    fn press(&self, _: Who, _: &Shown, _: &str) -> bool {
        false
    }

    fn public(&self, spot: Spot) -> Vec<Shown> {
        match spot {
            Spot::Main => vec![shown(self.printed())],
            Spot::Thread(_) | Spot::Denied => Vec::new(),
        }
    }

    fn private(&self, _: Who) -> Vec<Shown> {
        Vec::new()
    }

    fn deliver_twice(&self) {
        unreachable!("skipped")
    }

    fn deliver_again(&self, _: &str) {
        unreachable!("skipped")
    }

    fn limit_next_edit(&self) {
        unreachable!("skipped")
    }

    fn pass(&self, _: Duration) {}

    fn late_acks(&self) -> Vec<String> {
        Vec::new()
    }

    fn assert_clean(&self) {}
}
