//! A dialogue as the person sees it.

use std::io::Write;
use std::sync::Arc;

use super::*;

/// What the terminal shows, readable while the console owns it.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Dialogue {
    console: Console,
    shown: Shown,
}

impl Dialogue {
    fn new() -> Self {
        let shown = Shown::default();
        Self {
            console: Console::new(Box::new(WriterTerminal(shown.clone()))),
            shown,
        }
    }

    async fn deliver(&self, turn: Option<&str>, op: ReplyOp) -> Receipt {
        let to = ReplyTarget {
            platform: NAME.to_owned(),
            address: "local".to_owned(),
        };
        let turn = turn.map(TurnId::from);
        self.console.deliver(&to, turn.as_ref(), &op).await.unwrap()
    }

    fn text(&self) -> String {
        String::from_utf8(self.shown.0.lock().clone()).unwrap()
    }
}

fn answer(text: &str, delta: &str, replaced: bool, done: bool) -> ReplyOp {
    ReplyOp::Answer {
        text: text.to_owned(),
        delta: delta.to_owned(),
        replaced,
        done,
    }
}

fn status(text: &str) -> ReplyOp {
    ReplyOp::Status {
        text: text.to_owned(),
    }
}

fn tools(text: &str) -> ReplyOp {
    ReplyOp::Tools {
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn a_rescued_turn_a_cut_one_and_a_private_reply() {
    let d = Dialogue::new();
    let line = "⚠️ Rate limited — skipping 17 exhausted subs (quota registry) and switching to fallback provider...";
    d.deliver(Some("t1"), status(line)).await;
    d.deliver(Some("t1"), status(line)).await;
    d.deliver(Some("t1"), answer("Hel", "Hel", false, false))
        .await;
    d.deliver(Some("t1"), answer("Hello.", "lo.", false, false))
        .await;
    d.deliver(Some("t1"), answer("Hello.", "", false, true))
        .await;

    d.deliver(Some("t2"), answer("Looking", "Looking", false, false))
        .await;
    d.deliver(Some("t2"), tools("Read a.txt")).await;
    d.deliver(Some("t2"), tools("Read a.txt ✓\nBash ls")).await;
    d.deliver(Some("t2"), tools("Read a.txt ✓\nBash ls")).await;
    d.deliver(Some("t2"), answer("Looking at it.", " at it.", false, true))
        .await;
    let notice = ReplyOp::Notice {
        text: "first line\nsecond line\nthird line".to_owned(),
    };
    d.deliver(Some("t2"), notice).await;
    let reply = ReplyOp::Reply {
        text: "No saved handoff for this chat.".to_owned(),
        audience: Audience::Asker,
        buttons: Vec::new(),
    };
    d.deliver(None, reply).await;
    insta::assert_snapshot!(d.text(), @r"
    ⚠️ Rate limited — skipping 17 exhausted subs (quota registry) and switching to fallback provider...
    Hello.
    Looking
      · Read a.txt
      · Read a.txt ✓
      · Bash ls
     at it.
    first line
    second line
    third line
    (only you see this)
    No saved handoff for this chat.
    ");
}

#[tokio::test]
async fn a_withdrawn_answer_is_marked_and_printed_whole_once() {
    let d = Dialogue::new();
    d.deliver(Some("t"), answer("One two", "One two", false, false))
        .await;
    d.deliver(Some("t"), answer("One", "", true, false)).await;
    d.deliver(Some("t"), answer("One 2.", " 2.", false, true))
        .await;
    insta::assert_snapshot!(d.text(), @r"
    One two
    [the part above was withdrawn; the answer again:]
    One 2.
    ");
}

#[tokio::test]
async fn a_replacement_that_only_grows_is_just_more_text() {
    let d = Dialogue::new();
    d.deliver(Some("t"), answer("One", "One", false, false))
        .await;
    d.deliver(Some("t"), answer("One two", "", true, true))
        .await;
    assert_eq!(d.text(), "One two\n");
}

#[tokio::test]
async fn a_new_turn_starts_with_nothing_shown() {
    let d = Dialogue::new();
    d.deliver(Some("t1"), answer("Same.", "Same.", false, true))
        .await;
    d.deliver(Some("t2"), status("⚠️ x")).await;
    d.deliver(Some("t2"), answer("Same.", "Same.", false, true))
        .await;
    assert_eq!(d.text(), "Same.\n⚠️ x\nSame.\n");
}

#[tokio::test]
async fn no_text_of_any_op_can_move_the_cursor() {
    let d = Dialogue::new();
    let evil = "a\u{1b}[2J\u{1b}]0;title\u{7}\rb\u{9b}1A";
    let ops = [
        status(evil),
        tools(evil),
        answer(evil, evil, false, true),
        answer("new\u{1b}[1A", "", true, true),
        ReplyOp::Notice {
            text: evil.to_owned(),
        },
        ReplyOp::Reply {
            text: evil.to_owned(),
            audience: Audience::Everyone,
            buttons: Vec::new(),
        },
    ];
    for op in ops {
        d.deliver(Some("t"), op).await;
    }
    let text = d.text();
    assert_eq!(text.matches("a[2J]0;titleb1A").count(), 5);
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
}

#[tokio::test]
async fn each_op_has_a_receipt_of_its_own() {
    let d = Dialogue::new();
    let first = d.deliver(Some("t"), status("x")).await;
    let second = d.deliver(Some("t"), answer("y", "y", false, true)).await;
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_closed_output_is_a_delivery_error() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let console = Console::new(Box::new(WriterTerminal(Closed)));
    let to = ReplyTarget {
        platform: NAME.to_owned(),
        address: "local".to_owned(),
    };
    let error = console.deliver(&to, None, &status("x")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("console did not take the message")
    );
}
