use proptest::prelude::*;

use super::*;
use crate::escape::Dialect;

const SHAPE: Shape = Shape {
    dialect: Dialect::Discord,
    limit: 400,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What stands in the channel after the changes, and how often each message ended.
#[derive(Debug, Default)]
struct Channel {
    messages: Vec<String>,
    finals: Vec<usize>,
    files: Vec<String>,
}

impl Channel {
    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Show { at, text, stage } => {
                    assert!(at <= self.messages.len(), "messages come in order");
                    if at == self.messages.len() {
                        self.messages.push(String::new());
                        self.finals.push(0);
                    }
                    assert!(!text.is_empty() && self.finals[at] == 0);
                    self.messages[at] = text;
                    self.finals[at] += usize::from(stage == Stage::Final);
                }
                Change::Remove { at } => {
                    assert_eq!(at + 1, self.messages.len(), "only the last one goes");
                    assert_eq!(self.finals.pop(), Some(0));
                    self.messages.pop();
                }
                Change::File { text } => self.files.push(text),
            }
        }
    }
}

#[test]
fn the_first_text_gathers_and_later_ones_keep_the_interval() {
    let (mut stream, start) = (Stream::new(SHAPE, Flow::default()), Instant::now());
    stream.set("a", start);
    stream.set("ab", start + ms(500));
    assert_eq!(stream.due(start), Some(start + ms(1_000)));
    assert!(stream.take(start + ms(999)).is_empty());
    let show = |text: &str, stage| {
        vec![Change::Show {
            at: 0,
            text: text.to_owned(),
            stage,
        }]
    };
    assert_eq!(stream.take(start + ms(1_000)), show("ab", Stage::Live));
    assert_eq!(stream.due(start), None);
    stream.set("abc", start + ms(1_100));
    assert_eq!(stream.due(start), Some(start + ms(2_300)));
    assert_eq!(stream.take(start + ms(2_300)), show("abc", Stage::Live));
    stream.set("abcd", start + ms(9_000));
    assert_eq!(
        stream.due(start),
        Some(start + ms(9_000)),
        "after a rest at once"
    );
    stream.finish("abcde");
    stream.set("late", start + ms(9_100));
    assert_eq!(stream.take(start + ms(9_100)), show("abcde", Stage::Final));
    assert!(stream.take(start + ms(99_000)).is_empty() && stream.has_ended());
}

#[test]
fn a_text_taken_back_leaves_no_message_behind() {
    let (mut stream, start) = (Stream::new(SHAPE, Flow::default()), Instant::now());
    let mut channel = Channel::default();
    stream.set(&"word ".repeat(200), start);
    channel.apply(stream.take(start + ms(1_000)));
    assert_eq!(channel.messages.len(), 3);
    stream.set("other", start + ms(3_000));
    channel.apply(stream.take(start + ms(3_000)));
    assert_eq!(channel.messages, ["other"]);
    stream.finish("");
    channel.apply(stream.take(start + ms(4_000)));
    assert!(channel.messages.is_empty());
}

#[test]
fn a_long_answer_ends_as_a_file() {
    let (mut stream, start) = (Stream::new(SHAPE, Flow::default()), Instant::now());
    let mut channel = Channel::default();
    let text = "word ".repeat(2_000);
    stream.set(&text, start);
    channel.apply(stream.take(start + ms(1_000)));
    assert_eq!((channel.messages.len(), channel.files.len()), (5, 0));
    stream.finish(&text);
    channel.apply(stream.take(start + ms(1_000)));
    assert_eq!(channel.files, [text]);
    assert_eq!(channel.finals, [1; 5]);
}

#[test]
fn what_a_platform_calls_too_long_becomes_smaller_and_is_never_dropped() {
    let shape = Shape::DISCORD;
    let start = Instant::now();
    let text = "word ".repeat(300);
    // While it grows: everything in smaller pieces.
    let mut stream = Stream::new(shape, Flow::default());
    let mut channel = Channel::default();
    stream.set(&text, start);
    channel.apply(stream.take(start + ms(1_000)));
    assert!(stream.too_long(0, start + ms(1_100)).is_empty());
    channel.apply(stream.take(start + ms(1_100)));
    assert_eq!(channel.messages.len(), 2);
    stream.finish(&text);
    channel.apply(stream.take(start + ms(1_100)));
    assert_eq!(channel.messages.concat(), text);
    // At its end: shortened, with the whole as a file, once.
    let mut stream = Stream::new(shape, Flow::default());
    stream.finish(&text);
    stream.take(start);
    let mut texts = Vec::new();
    let mut files = 0;
    for _ in 0..5 {
        for change in stream.too_long(0, start) {
            match change {
                Change::Show { text, .. } => texts.push(text),
                Change::File { text: whole } => {
                    assert_eq!(whole, text);
                    files += 1;
                }
                Change::Remove { .. } => panic!("nothing is taken away"),
            }
        }
    }
    assert!(texts[0].len() <= 950 && texts[0].ends_with('…'));
    assert_eq!((texts[4].as_str(), files), (IN_FILE, 1));
}

fn words(word: &str, count: usize) -> String {
    word.chars().cycle().take(count).collect()
}

proptest! {
    /// However a text comes, is taken back and is looked at: in the end it stands there, once.
    #[test]
    fn the_final_text_stands_once(
        steps in prop::collection::vec((prop_oneof![4 => Just(true), 1 => Just(false)], 0_usize..900, 0_u64..3_000), 0..30),
        last in 0_usize..1_800,
    ) {
        let (mut stream, mut now) = (Stream::new(SHAPE, Flow::default()), Instant::now());
        let mut channel = Channel::default();
        let mut text = String::new();
        let mut given_at: Option<Instant> = None;
        for (grows, size, gap) in steps {
            if !grows {
                text.clear();
            }
            text.push_str(&words("lorem ipsum ", size));
            stream.set(&text, now);
            now += ms(gap);
            let changes = stream.take(now);
            if !changes.is_empty() {
                prop_assert!(given_at.is_none_or(|at| now - at >= Flow::default().interval));
                given_at = Some(now);
            }
            channel.apply(changes);
        }
        text = words("ipsum ", last);
        stream.finish(&text);
        channel.apply(stream.take(now));
        channel.apply(stream.take(now + ms(60_000)));
        let stands = channel.messages.concat();
        prop_assert_eq!(stands.trim_end(), text.trim_end());
        prop_assert!(channel.finals.iter().all(|finals| *finals == 1));
        prop_assert!(channel.files.is_empty());
    }
}
