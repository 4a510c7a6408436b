use super::*;
use crate::wire::Scope;

/// A channel in memory that limits every fourth write.
#[derive(Default)]
struct Fake {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    writes: usize,
    edits: usize,
    messages: Vec<(Place, Body)>,
    replies: Vec<(String, usize, Audience)>,
    settled: Vec<(String, Option<String>)>,
    signs: usize,
}

impl Fake {
    fn write(&self) -> Result<parking_lot::MutexGuard<'_, State>, WireError> {
        let mut state = self.state.lock();
        state.writes += 1;
        if state.writes.is_multiple_of(4) {
            return Err(WireError::RateLimited {
                after: Some(Duration::from_secs(2)),
                scope: Scope::Channel,
            });
        }
        Ok(state)
    }

    fn texts(&self, channel: &str) -> Vec<String> {
        let state = self.state.lock();
        let here = state
            .messages
            .iter()
            .filter(|(place, _)| place.channel == channel);
        here.map(|(_, body)| body.text.clone()).collect()
    }
}

#[async_trait]
impl Wire for Fake {
    async fn send(&self, place: &Place, body: &Body, _: &str) -> Result<MessageId, WireError> {
        let mut state = self.write()?;
        state.messages.push((place.clone(), body.clone()));
        Ok(MessageId((state.messages.len() - 1).to_string()))
    }

    async fn edit(&self, _: &Place, message: &MessageId, body: &Body) -> Result<(), WireError> {
        let mut state = self.write()?;
        state.edits += 1;
        let at: usize = message.0.parse().expect("an index");
        state.messages[at].1 = body.clone();
        Ok(())
    }

    async fn delete(&self, _: &Place, message: &MessageId) -> Result<(), WireError> {
        let mut state = self.write()?;
        let at: usize = message.0.parse().expect("an index");
        state.messages[at].1.text.clear();
        Ok(())
    }

    async fn find(&self, _: &Place, _: &str) -> Result<Option<MessageId>, WireError> {
        Ok(None)
    }
}

#[async_trait]
impl Surface for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn place(&self, address: &str) -> Option<Place> {
        (!address.is_empty()).then(|| Place {
            channel: address.to_owned(),
            thread: None,
        })
    }

    async fn settle(&self, address: &str, text: Option<&str>) -> Result<(), WireError> {
        let mut state = self.write()?;
        let settled = (address.to_owned(), text.map(ToOwned::to_owned));
        state.settled.push(settled);
        Ok(())
    }

    fn tools_shown(&self, _: &Place) -> ToolsShown {
        ToolsShown::Yes
    }

    async fn reply(
        &self,
        address: &str,
        bodies: Vec<Body>,
        audience: Audience,
    ) -> Result<MessageId, WireError> {
        let mut state = self.state.lock();
        state
            .replies
            .push((address.to_owned(), bodies.len(), audience));
        Ok(MessageId("reply".to_owned()))
    }

    async fn activity(&self, _: &Place) -> Result<(), WireError> {
        self.state.lock().signs += 1;
        Ok(())
    }
}

fn chat() -> (Arc<Fake>, Chat<Fake>) {
    let fake = Arc::new(Fake::default());
    let style = Style {
        shape: Shape::DISCORD,
        flow: Flow::default(),
        pace: Pace::DISCORD,
        activity_every: Duration::from_secs(8),
    };
    let chat = Chat::start(Arc::clone(&fake), style, "t");
    (fake, chat)
}

fn to(address: &str) -> ReplyTarget {
    ReplyTarget {
        platform: "fake".to_owned(),
        address: address.to_owned(),
    }
}

fn answer(text: &str, done: bool) -> ReplyOp {
    ReplyOp::Answer {
        text: text.to_owned(),
        delta: String::new(),
        replaced: false,
        done,
    }
}

fn status(text: &str) -> ReplyOp {
    ReplyOp::Status {
        text: text.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn turns_of_many_channels_stream_and_all_finals_arrive_once() {
    let (fake, chat) = chat();
    for step in 0..20 {
        for n in 0..50 {
            let turn = TurnId::new(n.to_string());
            let address = to(&format!("c{n}"));
            let ops = [
                answer(
                    &format!("turn {n}: {}", "word ".repeat(step * 20)),
                    step == 19,
                ),
                status("a line"),
            ];
            let skip = usize::from(step > 0);
            for op in ops.iter().rev().skip(skip) {
                chat.deliver(&address, Some(&turn), op).await.unwrap();
            }
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    chat.drained().await;
    for n in 0..50 {
        let want = format!("turn {n}: {}", "word ".repeat(380));
        let texts = fake.texts(&format!("c{n}"));
        assert_eq!(texts[0], "a line");
        assert_eq!(texts[1..].concat(), want);
    }
    let edits = fake.state.lock().edits;
    assert!(edits < 50 * 10, "{edits} edits for 1000 texts");
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_forgotten_after_its_end_and_may_add_to_its_status_line_before() {
    let (fake, chat) = chat();
    let turn = TurnId::from("t");
    chat.working("c");
    for op in [status("a"), answer("text", true), status("a b")] {
        chat.deliver(&to("c"), Some(&turn), &op).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    chat.drained().await;
    assert_eq!(fake.texts("c"), ["a b", "text"]);
    assert_eq!(fake.state.lock().signs, 1, "the sign ends with the turn");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(chat.shared.tables.lock().remembered(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_becomes_a_few_messages_and_a_file() {
    let (fake, chat) = chat();
    let text = "line of words\n".repeat(2_000);
    chat.deliver(&to("c"), Some(&TurnId::from("t")), &answer(&text, true))
        .await
        .unwrap();
    chat.drained().await;
    let state = fake.state.lock();
    assert_eq!(state.messages.len(), 6);
    let file = state.messages[5].1.file.clone().unwrap();
    assert_eq!(
        (file.name.as_str(), file.bytes.as_slice()),
        (crate::board::FILE_NAME, text.as_bytes())
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_is_answered_by_its_own_channel_alone() {
    let (fake, chat) = chat();
    let op = ReplyOp::Reply {
        text: "usage".to_owned(),
        audience: Audience::Asker,
        buttons: Vec::new(),
    };
    chat.deliver(&to("c"), None, &op).await.unwrap();
    chat.drained().await;
    let state = fake.state.lock();
    assert_eq!(state.replies, [("c".to_owned(), 1, Audience::Asker)]);
    assert!(state.messages.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_press_is_settled_on_the_message_it_came_from() {
    let (fake, chat) = chat();
    let op = ReplyOp::Settle { text: None };
    chat.deliver(&to("press"), None, &op).await.unwrap();
    assert_eq!(fake.state.lock().settled, [("press".to_owned(), None)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_arrives_even_if_the_platform_is_dropped() {
    let (fake, chat) = chat();
    let turn = TurnId::from("t");
    chat.deliver(&to("c"), Some(&turn), &answer("text", true))
        .await
        .unwrap();
    chat.deliver(
        &to("d"),
        None,
        &ReplyOp::Notice {
            text: "fault".to_owned(),
        },
    )
    .await
    .unwrap();
    drop(chat);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        (fake.texts("c"), fake.texts("d")),
        (vec!["text".to_owned()], vec!["fault".to_owned()])
    );
}

#[tokio::test]
async fn an_address_of_somebody_else_is_an_error() {
    let (_, chat) = chat();
    let refused = chat.deliver(&to(""), None, &status("a")).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot write to : fake made no such address"
    );
}
