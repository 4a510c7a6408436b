//! The rows of the suite. What is counted is what a person sees and what the model was asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gateway_core::access::STRANGER_LINE;
use platforms::split::Unit;
use providers::scripted::{Act, SeenAttempt};
use support::chat::{ChatUnderTest, Shown, Spot, Who, until, until_private, until_public};
use support::says;
use tokio::sync::Notify;

use super::{CARRIES, count, cut_in_a_call, spent, texts};

/// The platforms' own bound for commands and presses.
const ACK: Duration = Duration::from_secs(3);

async fn open<C: ChatUnderTest>(subscriptions: &[&str]) -> C {
    C::open(subscriptions).await
}

/// Every subscription says what it was asked.
fn echo<C: ChatUnderTest>(chat: &C) {
    for (_, sub) in chat.stage().subs() {
        sub.otherwise(|seen: &SeenAttempt| says(&format!("Answer to {}.", seen.prompt)));
    }
}

/// Stops in order, so that nothing more can come, and looks at the rules.
async fn close<C: ChatUnderTest>(chat: &mut C) {
    chat.stop().await;
    assert!(chat.late_acks().is_empty(), "{:?}", chat.late_acks());
    chat.assert_clean();
}

pub(super) async fn a_command_is_answered_to_its_asker_alone<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    let answered = chat.command(Who::Anna, "resume-handoff").await;
    let text = &answered.shown.text;
    assert!(text.contains("No saved handoff for this chat."), "{text}");
    assert!(answered.shown.private);
    assert!(answered.acked.is_none_or(|after| after < ACK));
    let help = chat.command(Who::Anna, "help").await.shown;
    assert!(
        help.private && help.text.contains("/usage"),
        "{}",
        help.text
    );
    close(&mut chat).await;
    if C::shape().is_some() {
        assert!(
            chat.public(Spot::Main).is_empty(),
            "{:?}",
            texts(&chat, Spot::Main)
        );
        assert!(chat.private(Who::Olga).is_empty());
    }
    assert!(
        chat.stage().sub("a").attempts().is_empty(),
        "no model was asked"
    );
}

pub(super) async fn two_previews_consume_nothing_and_the_next_turn_carries_once<
    C: ChatUnderTest,
>() {
    let mut chat: C = open(&["a"]).await;
    chat.stage().sub("a").play(cut_in_a_call(None));
    chat.say(Spot::Main, Who::Anna, "restart the jobs", true)
        .await;
    until_public(&chat, Spot::Main, |text| {
        text.contains("Handoff saved: 2 tool calls")
    })
    .await;
    let first = chat.command(Who::Anna, "resume-handoff").await.shown;
    let again = chat.command(Who::Anna, "resume-handoff").await.shown;
    assert!(
        first.private && first.text.contains(CARRIES),
        "{}",
        first.text
    );
    assert!(first.text.contains("[NEVER COMPLETED]"), "{}", first.text);
    assert_eq!(first.text, again.text, "a preview consumes nothing");
    chat.stage().sub("a").play(says("Picked up and done."));
    chat.say(Spot::Main, Who::Anna, "go on", true).await;
    until_public(&chat, Spot::Main, |text| {
        text.contains("Picked up and done.")
    })
    .await;
    chat.stage().sub("a").play(says("You are welcome."));
    chat.say(Spot::Main, Who::Anna, "thanks", true).await;
    until_public(&chat, Spot::Main, |text| text.contains("You are welcome.")).await;
    close(&mut chat).await;
    let prompts = chat.stage().sub("a").prompts();
    let carried: Vec<bool> = prompts
        .iter()
        .map(|prompt| prompt.contains(CARRIES))
        .collect();
    assert_eq!(carried, [false, true, false]);
    assert!(prompts[1].starts_with("go on\n\n"), "{}", prompts[1]);
    assert_eq!(count(&chat, Spot::Main, "Handoff saved:"), 1);
}

/// Numbered lines in paragraphs and fences, longer than `messages` messages of this platform.
fn long_text<C: ChatUnderTest>(messages: usize) -> (String, usize) {
    let limit = C::shape().map_or(2_000, |shape| shape.limit);
    let (mut text, mut lines) = (String::new(), 0);
    while text.len() < limit * messages {
        text.push_str("Some words before the code, with <angles> & an ampersand.\n\n```rust\n");
        for _ in 0..25 {
            text.push_str(&format!("let line_{lines:05} = \"<b>\" & {lines};\n"));
            lines += 1;
        }
        text.push_str("```\n\nAnd some behind it.\n\n");
    }
    (text.trim_end().to_owned(), lines)
}

/// Everything but white space and the fence lines, which splitting may add.
fn essence(text: &str) -> String {
    let kept = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("```"));
    kept.flat_map(str::split_whitespace).collect()
}

pub(super) async fn a_long_answer_comes_in_whole_pieces<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    let (text, lines) = long_text::<C>(2);
    chat.stage().sub("a").play(says(&text));
    chat.say(Spot::Main, Who::Anna, "at length, please", true)
        .await;
    let last = format!("line_{:05}", lines - 1);
    until_public(&chat, Spot::Main, |shown| shown.contains(&last)).await;
    close(&mut chat).await;
    let pieces = chat.public(Spot::Main);
    let Some(shape) = C::shape() else {
        assert!(
            pieces[0].text.contains(&text),
            "a terminal shows it as it is"
        );
        return;
    };
    assert!((3..=5).contains(&pieces.len()), "{} messages", pieces.len());
    for piece in &pieces {
        let length = Unit::Utf16.length(&piece.raw);
        assert!((1..=shape.limit).contains(&length), "{length}");
        let fences = piece
            .text
            .lines()
            .filter(|line| line.trim_start().starts_with("```"));
        assert_eq!(fences.count() % 2, 0, "an open fence:\n{}", piece.text);
        assert!(!piece.text.trim().is_empty());
    }
    let joined: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    assert_eq!(essence(&joined.join("\n")), essence(&text));
}

pub(super) async fn a_very_long_answer_ends_with_a_file<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    let (text, _) = long_text::<C>(8);
    chat.stage().sub("a").play(says(&text));
    chat.say(Spot::Main, Who::Anna, "everything, please", true)
        .await;
    let file = until(&chat, "the answer as a file", |chat| {
        let all = chat.public(Spot::Main);
        all.into_iter().flat_map(|one| one.files).next()
    })
    .await;
    close(&mut chat).await;
    assert_eq!(String::from_utf8_lossy(&file), text);
    let all = chat.public(Spot::Main);
    assert!(all.len() <= 6, "{} messages", all.len());
    assert_eq!(all.iter().map(|one| one.files.len()).sum::<usize>(), 1);
}

/// A model that speaks word by word; whoever has the bell makes it go on.
fn word_by_word(words: usize, bell: &Arc<Notify>) -> Vec<Act> {
    let mut acts = Vec::new();
    for word in 0..words {
        acts.push(Act::text(format!("word-{word:03} ")));
        acts.push(Act::Wait(Arc::clone(bell)));
    }
    acts.push(Act::Answer);
    acts
}

pub(super) async fn a_stream_is_few_edits_and_one_final_text<C: ChatUnderTest>() {
    const WORDS: usize = 160;
    let mut chat: C = open(&["a"]).await;
    let bell = Arc::new(Notify::new());
    chat.stage().sub("a").play(word_by_word(WORDS, &bell));
    let began = Instant::now();
    chat.say(Spot::Main, Who::Anna, "word by word", true).await;
    // The model's own pace: a word every 25 ms.
    let rings = tokio::spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(25));
        loop {
            pace.tick().await;
            bell.notify_one();
        }
    });
    until_public(&chat, Spot::Main, |text| text.contains("word-159")).await;
    let took = began.elapsed();
    rings.abort();
    close(&mut chat).await;
    let all = chat.public(Spot::Main);
    let whole: Vec<String> = (0..WORDS).map(|word| format!("word-{word:03}")).collect();
    let shown = texts(&chat, Spot::Main);
    let shown: Vec<&str> = shown.iter().map(|text| text.trim_end()).collect();
    assert_eq!(shown, [whole.join(" ")]);
    let most = usize::try_from(took.as_millis() / 1_300).unwrap() + 1;
    assert!(
        (1..=most).contains(&all[0].edits),
        "{} edits in {took:?}",
        all[0].edits
    );
}

pub(super) async fn model_text_pings_nobody<C: ChatUnderTest>() {
    const RUDE: &str =
        "@everyone @here <!channel> <!here|x> <!everyone> <@{id}> <@&{id}> <!subteam^S1> <#{id}>";
    let mut chat: C = open(&["a"]).await;
    let bell = Arc::new(Notify::new());
    let rude = RUDE.replace("{id}", &chat.id(Who::Olga));
    chat.stage().sub("a").play([
        Act::text(format!("First {rude}")),
        Act::Wait(Arc::clone(&bell)),
        Act::text(format!(" and then {rude} at last")),
        Act::Answer,
    ]);
    chat.say(Spot::Main, Who::Anna, "be rude", true).await;
    until_public(&chat, Spot::Main, |text| text.contains("First")).await;
    bell.notify_one();
    let shown = until_public(&chat, Spot::Main, |text| text.contains("at last")).await;
    assert!(shown.edits > 0, "the second text came as an edit");
    // The same out of a notice: the request comes back in the preview and in what is saved.
    chat.stage()
        .sub("a")
        .play(vec![Act::text(rude.clone()), spent(None)]);
    chat.say(Spot::Main, Who::Anna, &format!("again: {rude}"), true)
        .await;
    until_public(&chat, Spot::Main, |text| text.contains("Handoff saved")).await;
    let preview = chat.command(Who::Anna, "resume-handoff").await.shown;
    assert!(preview.text.contains("everyone"), "{}", preview.text);
    close(&mut chat).await;
    let all = [chat.public(Spot::Main), chat.private(Who::Anna)].concat();
    for one in all {
        assert!(!one.pinged, "somebody was notified by {:?}", one.raw);
    }
}

pub(super) async fn everything_delivered_twice_is_answered_once<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    echo(&chat);
    chat.deliver_twice();
    let first = chat.say(Spot::Main, Who::Anna, "first", true).await;
    until_public(&chat, Spot::Main, |text| text.contains("Answer to first.")).await;
    chat.deliver_again(&first);
    let status = chat.command(Who::Anna, "status").await;
    assert!(status.shown.private);
    // What is asked last is heard behind every repetition.
    chat.say(Spot::Main, Who::Anna, "second", true).await;
    until_public(&chat, Spot::Main, |text| text.contains("Answer to second.")).await;
    chat.restart().await;
    chat.deliver_again(&first);
    chat.say(Spot::Main, Who::Anna, "third", true).await;
    until_public(&chat, Spot::Main, |text| text.contains("Answer to third.")).await;
    close(&mut chat).await;
    for asked in ["first", "second", "third"] {
        assert_eq!(
            count(&chat, Spot::Main, &format!("Answer to {asked}.")),
            1,
            "{asked}"
        );
    }
    assert_eq!(
        chat.public(Spot::Main).len(),
        3,
        "{:?}",
        texts(&chat, Spot::Main)
    );
    assert_eq!(
        chat.stage().sub("a").prompts(),
        ["first", "second", "third"]
    );
    assert_eq!(chat.private(Who::Anna).len(), 1);
}

/// Chooses a route; the answer has a button.
async fn choose<C: ChatUnderTest>(chat: &C, route: &str) -> Shown {
    let chosen = chat
        .command(Who::Anna, &format!("model {route}"))
        .await
        .shown;
    assert_eq!(chosen.buttons.len(), 1, "{chosen:?}");
    chosen
}

async fn chain_decides<C: ChatUnderTest>(chat: &C) -> bool {
    let model = chat.command(Who::Anna, "model").await.shown.text;
    model.starts_with("The chain decides.")
}

pub(super) async fn a_button_pressed_twice_acts_once<C: ChatUnderTest>() {
    let mut chat: C = open(&["a", "b"]).await;
    let chosen = choose(&chat, "b/m").await;
    assert!(!chain_decides(&chat).await);
    // Both presses are on their way before either is answered.
    assert!(chat.press(Who::Anna, &chosen, &chosen.buttons[0]));
    assert!(chat.press(Who::Anna, &chosen, &chosen.buttons[0]));
    until_private(&chat, Who::Anna, |text| text.contains("Undone")).await;
    until_private(&chat, Who::Anna, |text| {
        text.contains("This was done already.")
    })
    .await;
    assert!(chain_decides(&chat).await);
    close(&mut chat).await;
    let private = chat.private(Who::Anna);
    let undone = private.iter().filter(|one| one.text.contains("Undone"));
    assert_eq!(undone.count(), 1, "{private:?}");
    assert!(
        !chat.press(Who::Anna, &chosen, &chosen.buttons[0]),
        "the button is gone"
    );
}

pub(super) async fn a_button_works_after_a_restart<C: ChatUnderTest>() {
    let mut chat: C = open(&["a", "b"]).await;
    let chosen = choose(&chat, "b/m").await;
    chat.restart().await;
    assert!(!chain_decides(&chat).await);
    assert!(chat.press(Who::Anna, &chosen, &chosen.buttons[0]));
    until_private(&chat, Who::Anna, |text| text.contains("Undone")).await;
    assert!(chain_decides(&chat).await);
    close(&mut chat).await;
}

pub(super) async fn what_is_asked_in_a_thread_is_answered_there<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    echo(&chat);
    for (thread, asked) in [(0, "red"), (1, "blue"), (0, "redder")] {
        chat.say(Spot::Thread(thread), Who::Anna, asked, true).await;
        let answer = format!("Answer to {asked}.");
        until_public(&chat, Spot::Thread(thread), |text| text == answer).await;
    }
    close(&mut chat).await;
    assert_eq!(
        texts(&chat, Spot::Thread(0)),
        ["Answer to red.", "Answer to redder."]
    );
    assert_eq!(texts(&chat, Spot::Thread(1)), ["Answer to blue."]);
    assert!(
        chat.public(Spot::Main).is_empty(),
        "{:?}",
        texts(&chat, Spot::Main)
    );
    let attempts = chat.stage().sub("a").attempts();
    let of = |at: usize| attempts[at].conversation.clone();
    assert_eq!(of(0), of(2));
    assert_ne!(of(0), of(1));
    let history = |at: usize| -> Vec<&str> {
        let all = attempts[at].history.iter();
        all.map(|exchange| exchange.request.as_str()).collect()
    };
    assert!(
        history(1).is_empty() && history(2) == ["red"],
        "{attempts:?}"
    );
}

pub(super) async fn nothing_waits_for_a_slow_model<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    let bell = Arc::new(Notify::new());
    chat.stage().sub("a").play([
        Act::Wait(Arc::clone(&bell)),
        Act::text("That took a while."),
        Act::Answer,
    ]);
    chat.say(Spot::Main, Who::Anna, "think hard", true).await;
    chat.stage().sub("a").prompts_reach(1).await;
    let status = chat.command(Who::Anna, "status").await;
    assert!(status.acked.is_some_and(|after| after < ACK), "{status:?}");
    chat.pass(Duration::from_secs(20));
    let usage = chat.command(Who::Anna, "usage").await;
    assert!(usage.acked.is_some_and(|after| after < ACK), "{usage:?}");
    assert!(
        chat.public(Spot::Main).is_empty(),
        "{:?}",
        texts(&chat, Spot::Main)
    );
    bell.notify_one();
    until_public(&chat, Spot::Main, |text| text == "That took a while.").await;
    close(&mut chat).await;
    assert_eq!(texts(&chat, Spot::Main), ["That took a while."]);
}

pub(super) async fn a_rate_limit_in_a_stream_loses_nothing<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    let bell = Arc::new(Notify::new());
    chat.stage().sub("a").play([
        Act::text("The first half"),
        Act::Wait(Arc::clone(&bell)),
        Act::text(", more of it"),
        Act::Wait(Arc::clone(&bell)),
        Act::text(", and the rest."),
        Act::Answer,
    ]);
    chat.say(Spot::Main, Who::Anna, "in parts", true).await;
    until_public(&chat, Spot::Main, |text| text == "The first half").await;
    chat.limit_next_edit();
    bell.notify_one();
    chat.limit_next_edit();
    bell.notify_one();
    let whole = "The first half, more of it, and the rest.";
    until_public(&chat, Spot::Main, |text| text == whole).await;
    close(&mut chat).await;
    assert_eq!(texts(&chat, Spot::Main), [whole]);
}

pub(super) async fn the_status_line_stands_once<C: ChatUnderTest>() {
    let mut chat: C = open(&["a", "b", "c", "d"]).await;
    let day = jiff::SignedDuration::from_hours(24);
    chat.stage().publish_spent(&[("b".to_owned(), day)]);
    let later = chat.stage().now() + day;
    chat.stage().sub("a").play([spent(Some(later))]);
    chat.stage().sub("c").play([spent(Some(later))]);
    chat.stage().sub("d").play(says("Here it is."));
    chat.say(Spot::Main, Who::Anna, "hello", true).await;
    until_public(&chat, Spot::Main, |text| text.contains("Here it is.")).await;
    let line = "⚠️ Rate limited — skipping 1 exhausted sub (quota registry) and switching to fallback provider...";
    until_public(&chat, Spot::Main, |text| text.contains("Answered by d/m.")).await;
    close(&mut chat).await;
    assert_eq!(
        count(&chat, Spot::Main, "⚠️"),
        1,
        "{:?}",
        texts(&chat, Spot::Main)
    );
    if C::shape().is_some() {
        let want = [format!("{line} Answered by d/m."), "Here it is.".to_owned()];
        assert_eq!(texts(&chat, Spot::Main), want);
    }
}

pub(super) async fn a_stranger_gets_one_line_and_no_model<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    echo(&chat);
    for text in ["hello?", "anybody?", "please!"] {
        chat.say(Spot::Main, Who::Stranger, text, true).await;
    }
    chat.say(Spot::Main, Who::Stranger, "not to you", false)
        .await;
    chat.say(Spot::Main, Who::Anna, "hello", true).await;
    until_public(&chat, Spot::Main, |text| text == "Answer to hello.").await;
    until(&chat, "the polite line", |chat| {
        (polite(chat) > 0).then_some(())
    })
    .await;
    close(&mut chat).await;
    assert_eq!(polite(&chat), 1);
    assert_eq!(chat.stage().sub("a").prompts(), ["hello"]);
    assert!(chat.public(Spot::Main).len() + chat.private(Who::Stranger).len() <= 2);
}

fn polite<C: ChatUnderTest>(chat: &C) -> usize {
    let private = chat.private(Who::Stranger);
    let private = private.iter().filter(|one| one.text == STRANGER_LINE);
    count(chat, Spot::Main, STRANGER_LINE) + private.count()
}

pub(super) async fn a_denied_channel_gets_silence<C: ChatUnderTest>() {
    let mut chat: C = open(&["a"]).await;
    echo(&chat);
    for who in [Who::Anna, Who::Olga, Who::Stranger] {
        chat.say(Spot::Denied, who, "hello?", true).await;
    }
    chat.say(Spot::Main, Who::Anna, "here", false).await;
    until_public(&chat, Spot::Main, |text| text == "Answer to here.").await;
    close(&mut chat).await;
    assert!(
        chat.public(Spot::Denied).is_empty(),
        "{:?}",
        texts(&chat, Spot::Denied)
    );
    assert!(chat.private(Who::Stranger).is_empty());
    assert_eq!(chat.stage().sub("a").prompts(), ["here"]);
}
