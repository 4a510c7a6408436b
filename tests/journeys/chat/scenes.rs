//! The whole scene: 21 subscriptions of which 17 are spent, one line in the channel; everything spent, with the closing line
//! and the notice as messages; a preview for the asker alone; the next message continues, the one after carries nothing.

use jiff::SignedDuration;
use support::chat::{ChatUnderTest, DiscordRoom, SlackRoom, Spot, Who, until_public};
use support::says;

use super::{CARRIES, count, cut_in_a_call, spent, texts};

/// The ones the published registry knows to be spent, by number.
const SPENT: std::ops::RangeInclusive<usize> = 2..=18;

/// When the first subscription is back.
const BACK_AFTER: SignedDuration = SignedDuration::from_hours(3);

fn name(number: usize) -> String {
    format!("sub-{number:02}")
}

fn for_days(numbers: impl Iterator<Item = usize>) -> Vec<(String, SignedDuration)> {
    numbers
        .map(|number| (name(number), SignedDuration::from_hours(48)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_discord_the_work_goes_on() {
    scene::<DiscordRoom>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_slack_the_work_goes_on() {
    scene::<SlackRoom>().await;
}

async fn scene<C: ChatUnderTest>() {
    let names: Vec<String> = (1..=21).map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut chat = C::open(&names).await;
    let here = Spot::Main;

    chat.stage().publish_spent(&for_days(SPENT));
    let back = chat.stage().now() + BACK_AFTER;
    chat.stage().sub("sub-01").play([spent(Some(back))]);
    chat.stage().sub("sub-19").play(says("It does not."));
    chat.say(here, Who::Anna, "Does it notice?", true).await;
    until_public(&chat, here, |text| text == "It does not.").await;
    let line = "⚠️ Rate limited — skipping 17 exhausted subs (quota registry) and switching to fallback provider... Answered by sub-19/m.";
    until_public(&chat, here, |text| text == line).await;
    assert_eq!(texts(&chat, here), [line, "It does not."]);

    let all_but_one = SPENT.chain([19, 21]);
    chat.stage().publish_spent(&for_days(all_but_one));
    let later = chat.stage().now() + SignedDuration::from_hours(50);
    chat.stage().sub("sub-20").play(cut_in_a_call(Some(later)));
    chat.say(here, Who::Anna, "Then add one.", true).await;
    until_public(&chat, here, |text| text.contains("Handoff saved:")).await;
    let cut = texts(&chat, here).split_off(2);
    let at = |what: &str| {
        let found = cut.iter().position(|text| text.contains(what));
        found.unwrap_or_else(|| panic!("no {what:?} in {cut:?}"))
    };
    assert!(at("Looking at the jobs.") < at("❌"), "{cut:?}");
    assert!(at("❌") < at("⛔ Turn cut"), "{cut:?}");
    assert!(
        cut[at("❌")].contains("the soonest resets in 3h"),
        "{cut:?}"
    );
    assert!(
        cut.iter().filter(|text| text.contains("⚠️")).count() <= 1,
        "{cut:?}"
    );

    let public = chat.public(here).len();
    let preview = chat.command(Who::Anna, "resume-handoff").await.shown;
    assert!(
        preview.private && preview.text.contains(CARRIES),
        "{preview:?}"
    );
    let again = chat.command(Who::Anna, "resume-handoff").await.shown;
    assert_eq!(again.text, preview.text);
    assert_eq!(
        chat.public(here).len(),
        public,
        "a preview shows nothing to others"
    );

    chat.stage().pass(BACK_AFTER + SignedDuration::from_mins(5));
    chat.stage()
        .sub("sub-01")
        .play(says("Picked up where it was cut."));
    chat.stage().sub("sub-01").play(says("You are welcome."));
    chat.say(here, Who::Anna, "Go on.", true).await;
    until_public(&chat, here, |text| text == "Picked up where it was cut.").await;
    chat.say(here, Who::Anna, "Thanks!", true).await;
    until_public(&chat, here, |text| text == "You are welcome.").await;
    chat.stop().await;
    chat.assert_clean();

    for number in SPENT {
        assert!(
            chat.stage().sub(&name(number)).attempts().is_empty(),
            "{number} was asked"
        );
    }
    let carried = chat.stage().subs().flat_map(|(_, sub)| sub.prompts());
    assert_eq!(carried.filter(|prompt| prompt.contains(CARRIES)).count(), 1);
    let first = chat.stage().sub("sub-01").prompts();
    assert!(
        first[1].starts_with("Go on.\n\n") && first[2] == "Thanks!",
        "{first:?}"
    );
    assert_eq!(count(&chat, here, "Handoff saved:"), 1);
}
