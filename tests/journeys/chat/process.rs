//! The program from its start to SIGTERM: one `baton run` that serves Discord and Slack from a configuration file, over
//! servers on loopback that count what reaches them.

use jiff::{SignedDuration, Timestamp};
use providers::loopback::{Loopback, Step, Wire};
use support::chat::process::Home;
use support::chat::stage::publish_spent;
use support::chat::{ChatUnderTest, DiscordRoom, SlackRoom, Spot, Who, until_public};

use super::{CARRIES, count, texts};

/// Subscriptions, each with a server of its own; 2 to 18 are published as spent.
const SUBSCRIPTIONS: usize = 21;

fn spent(numbers: impl Iterator<Item = usize>) -> Vec<(String, SignedDuration)> {
    let day = SignedDuration::from_hours(30);
    numbers
        .map(|number| (format!("sub-{number:02}"), day))
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program reads the same clock"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

fn configuration(home: &Home, upstreams: &[Loopback], sections: &[String]) -> String {
    let mut text = String::new();
    for (at, upstream) in upstreams.iter().enumerate() {
        let name = format!("sub-{:02}", at + 1);
        text.push_str(&format!(
            "[subscriptions.{name}]\nprovider = \"anthropic\"\nbilling = \"plan\"\nbase_url = \"{}\"\nkey_file = {:?}\n\n",
            upstream.base_url(),
            home.key(&name),
        ));
    }
    let chain: Vec<String> = (1..=upstreams.len())
        .map(|number| format!("\"sub-{number:02}/opus\""))
        .collect();
    text.push_str(&format!(
        "[profiles.default]\nchain = [{}]\nworkdir = {:?}\n\n[profiles.default.plugins]\nquota = {{ enabled = true }}\nhandoff = {{ enabled = true }}\n\n{}",
        chain.join(", "),
        home.work(),
        sections.join("\n"),
    ));
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_serves_both_platforms_until_sigterm() {
    providers::install_tls();
    let home = Home::new();
    let mut upstreams = Vec::new();
    for _ in 0..SUBSCRIPTIONS {
        upstreams.push(Loopback::start(Wire::Anthropic).await.expect("a port"));
    }
    let discord = DiscordRoom::furnished(&[]).await;
    let slack = SlackRoom::furnished(&[]).await;
    let sections = [discord.toml(), slack.toml()];
    home.configure(&configuration(&home, &upstreams, &sections));
    let usage = home.root().join("var/usage-portal/site/usage.json");
    publish_spent(&usage, now(), &spent(2..=18));

    let baton = tokio::task::block_in_place(|| {
        let mut baton = home.run(&["--drain", "5s"]);
        baton.says("ready", 2);
        baton
    });
    let first = Step::UnifiedRejected {
        window: "five_hour".into(),
        resets_at: now() + SignedDuration::from_hours(3),
    };
    upstreams[0].enqueue(first);
    visit(&discord, &upstreams, &usage, 17).await;
    visit(&slack, &upstreams, &usage, 18).await;

    let (status, said, errors) = tokio::task::block_in_place(|| baton.terminate());
    assert!(status.success(), "{status}: {said:?}\n{errors}");
    for (at, upstream) in upstreams.iter().enumerate().take(18).skip(1) {
        assert_eq!(
            upstream.count(),
            0,
            "sub-{:02} is known to be spent",
            at + 1
        );
    }
    assert_eq!(upstreams[0].count(), 1);
    for room in [discord.late_acks(), slack.late_acks()] {
        assert!(room.is_empty(), "{room:?}");
    }
    discord.assert_clean();
    slack.assert_clean();
}

/// One visit: an answer by another route, everything spent, a preview, and on with it.
async fn visit<C: ChatUnderTest>(
    chat: &C,
    upstreams: &[Loopback],
    usage: &std::path::Path,
    skipped: usize,
) {
    let here = Spot::Main;
    let backup = &upstreams[18];
    let asked_before = backup.count();
    backup.enqueue(Step::answer("It does not notice."));
    chat.say(here, Who::Anna, "Does it notice?", true).await;
    until_public(chat, here, |text| text == "It does not notice.").await;
    until_public(chat, here, |text| text.contains("Answered by sub-19/opus.")).await;
    let line = format!("skipping {skipped} exhausted subs (quota registry)");
    assert_eq!(count(chat, here, &line), 1, "{:?}", texts(chat, here));
    assert_eq!(chat.public(here).len(), 2, "{:?}", texts(chat, here));

    publish_spent(usage, now(), &spent((2..=18).chain(19..=21)));
    chat.say(here, Who::Anna, "Then add one.", true).await;
    until_public(chat, here, |text| text.contains("Handoff saved:")).await;
    let closing = "Every subscription in the chain is out of quota";
    assert_eq!(count(chat, here, closing), 1, "{:?}", texts(chat, here));
    for _ in 0..2 {
        let preview = chat.command(Who::Anna, "resume-handoff").await.shown;
        assert!(
            preview.private && preview.text.contains(CARRIES),
            "{preview:?}"
        );
    }

    publish_spent(usage, now(), &spent(2..=18));
    backup.enqueue(Step::answer("Picked up."));
    backup.enqueue(Step::answer("You are welcome."));
    chat.say(here, Who::Anna, "Go on.", true).await;
    until_public(chat, here, |text| text == "Picked up.").await;
    chat.say(here, Who::Anna, "Thanks!", true).await;
    until_public(chat, here, |text| text == "You are welcome.").await;
    let requests = backup.requests().split_off(asked_before);
    let carried: Vec<bool> = requests
        .iter()
        .map(|request| request.prompt().contains(CARRIES))
        .collect();
    assert_eq!(carried, [false, true, false]);
}
