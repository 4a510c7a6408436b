//! `baton run` on Discord and Slack: who is answered, where, how often; and how it comes to an end.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::access::STRANGER_LINE;
use gateway_fakes::discord::{ChannelId, Said as DiscordSaid};
use gateway_fakes::slack::Said as SlackSaid;
use gateway_fakes::{FakeDiscord, FakeSlack};
use gateway_host::front::serve::{End, Said};
use providers::scripted::Act;
use support::served::{How, Served, discord, slack};
use tokio::sync::Notify;

/// What the bot said in a channel, in order.
fn texts(fake: &FakeDiscord, channel: ChannelId) -> Vec<String> {
    let said = fake.from_bot(channel).into_iter();
    said.map(|message| message.text).collect()
}

#[tokio::test]
async fn a_named_person_is_answered_once_and_a_stranger_is_told_once() {
    let fake = FakeDiscord::start().await;
    let (anna, eve) = (fake.person("anna"), fake.person("eve"));
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\n",
        discord(&fake)
    ))
    .await;
    fake.duplicate_events(2); // every event comes more than once
    let (general, bot) = (fake.general(), fake.bot());
    for _ in 0..2 {
        fake.say(general, eve, format!("<@{bot}> let me in").as_str());
    }
    fake.say(general, anna, "nobody is named: not for the bot");
    fake.say(general, anna, format!("<@{bot}> hello").as_str());
    let answer = fake
        .wait_for_text(general, |text| text.contains("echo: hello"))
        .await;
    assert!(answer.pings.is_empty());
    fake.say(general, anna, format!("<@{bot}> and again").as_str());
    fake.wait_for_text(general, |text| text == "echo: and again")
        .await;
    assert_eq!(served.stop().await, End::Stopped);
    let said = texts(&fake, general);
    assert_eq!(said, [STRANGER_LINE, "echo: hello", "echo: and again"]);
    assert_eq!(served.sub.prompts(), ["hello", "and again"]);
    assert!(!fake.typing().is_empty(), "the working sign was shown");
    fake.assert_clean();
}

#[tokio::test]
async fn threads_and_direct_messages_are_conversations_of_their_own() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let general = fake.general();
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\nchannels = [\"{general}\"]\n",
        discord(&fake)
    ))
    .await;
    let root = fake.say(general, anna, "in the channel");
    fake.wait_for_text(general, |text| text == "echo: in the channel")
        .await;
    let (thread, dm) = (fake.thread(root, "apart"), fake.dm(anna));
    fake.say(thread, anna, "in the thread");
    fake.wait_for_text(thread, |text| text == "echo: in the thread")
        .await;
    fake.say(dm, anna, "alone");
    fake.wait_for_text(dm, |text| text == "echo: alone").await;
    served.stop().await;
    let attempts = served.sub.attempts();
    let conversations: std::collections::BTreeSet<_> = attempts
        .iter()
        .map(|attempt| attempt.conversation.clone())
        .collect();
    assert_eq!((attempts.len(), conversations.len()), (3, 3));
    fake.assert_clean();
}

#[tokio::test]
async fn two_profiles_of_one_bot_answer_each_in_its_channel() {
    let fake = FakeDiscord::start().await;
    let (anna, olga) = (fake.person("anna"), fake.person("olga"));
    let (one, two) = (fake.general(), fake.channel("two"));
    let keys = discord(&fake);
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{keys}users = [\"{anna}\"]\nchannels = [\"{one}\"]\n\
         [profiles.work]\nchain = [\"a/w\"]\n\
         [profiles.work.discord]\n{keys}users = [\"{anna}\"]\noperators = [\"{olga}\"]\nchannels = [\"{two}\"]\n"
    ))
    .await;
    for (channel, who, text) in [
        (one, anna, "first"),
        (two, anna, "second"),
        (fake.dm(anna), anna, "direct"),
        (fake.dm(olga), olga, "operator"),
    ] {
        fake.say(channel, who, text);
        fake.wait_for_text(channel, |said| said == format!("echo: {text}"))
            .await;
    }
    served.stop().await;
    let models: Vec<(String, String)> = served
        .sub
        .attempts()
        .into_iter()
        .map(|attempt| (attempt.prompt, attempt.model.to_string()))
        .collect();
    let want = [
        ("first", "m"),
        ("second", "w"),
        ("direct", "m"), // the first profile that names the person
        ("operator", "w"),
    ];
    assert_eq!(
        models,
        want.map(|(text, model)| (text.into(), model.into()))
    );
    fake.assert_clean();
}

#[tokio::test]
async fn the_owner_pairs_once_and_stays_operator_until_it_is_taken_back() {
    let fake = FakeDiscord::start().await;
    let (owner, eve) = (fake.person("owner"), fake.person("eve"));
    let sections = format!("[profiles.default.discord]\n{}", discord(&fake));
    let mut served = Served::serving(&sections).await;
    let is_code = |one: &Said| matches!(one, Said::Code { .. });
    let Said::Code { code, .. } = served.said(is_code).await else {
        unreachable!("it was asked for");
    };
    let (door, hers) = (fake.dm(owner), fake.dm(eve));
    fake.say(hers, eve, "/pair 0000-0000");
    fake.wait_for_text(hers, |text| text.contains("not the code"))
        .await;
    fake.say(
        door,
        owner,
        format!("/pair {}", code.to_lowercase()).as_str(),
    );
    fake.wait_for_text(door, |text| text.contains("You are an operator"))
        .await;
    fake.say(door, owner, "hello");
    fake.wait_for_text(door, |text| text == "echo: hello").await;
    fake.say(hers, eve, format!("/pair {code}").as_str());
    fake.wait_for_text(hers, |text| text.contains("no longer valid"))
        .await;
    served.stop().await;

    served.start(How::default()).await;
    let theirs = format!("{owner}");
    let known = served
        .said(|one| matches!(one, Said::PairedOperator { person, .. } if *person == theirs))
        .await;
    assert!(known.to_string().contains("--pair"), "{known}");
    served.ready().await;
    fake.say(door, owner, "still here?");
    fake.wait_for_text(door, |text| text == "echo: still here?")
        .await;
    assert!(!served.all_said().iter().any(is_code));
    served.stop().await;

    let how = How {
        pair: true,
        ..How::default()
    };
    served.start(how).await;
    served.said(is_code).await;
    served.ready().await;
    fake.say(door, owner, "and now?");
    fake.wait_for_text(door, |text| text == STRANGER_LINE).await;
    served.stop().await;
    assert_eq!(served.sub.prompts(), ["hello", "still here?"]);
    fake.assert_clean();
}

#[tokio::test]
async fn files_are_kept_where_they_belong_and_read_to_the_model() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\n",
        discord(&fake)
    ))
    .await;
    let file =
        |name: &str, kind: &str, bytes: &[u8]| (name.to_owned(), kind.to_owned(), bytes.to_vec());
    let dm = fake.dm(anna);
    let said = DiscordSaid {
        text: "look at these".to_owned(),
        files: vec![
            file("../../../config.toml", "text/plain", b"a ``` fence"),
            file("tool.exe", "application/octet-stream", b"MZ"),
            file("../../../config.toml", "text/plain", b"the second"),
        ],
        ..DiscordSaid::default()
    };
    fake.say(dm, anna, said);
    fake.wait_for_text(dm, |text| {
        text.contains("tool.exe is neither text nor an image")
    })
    .await;
    fake.wait_for_text(dm, |text| text.contains("echo: look at these"))
        .await;
    served.stop().await;
    let prompts = served.sub.prompts();
    let [prompt] = prompts.as_slice() else {
        panic!("{prompts:?}");
    };
    assert!(prompt.contains("\n````\na ``` fence\n````"), "{prompt}");
    assert!(prompt.contains("the second"), "{prompt}");
    let home = served.home.path().display().to_string();
    assert!(
        !prompt.contains(&home),
        "nothing that cannot be read is named"
    );

    let folders = served.path("state/attachments");
    let mut kept = Vec::new();
    for folder in std::fs::read_dir(&folders).unwrap() {
        let folder = folder.unwrap();
        assert_eq!(
            folder.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            kept.push(std::fs::read_to_string(file.path()).unwrap());
        }
    }
    kept.sort();
    assert_eq!(kept, ["a ``` fence", "the second"]);
    let config = std::fs::read_to_string(served.root().config_file()).unwrap();
    assert!(config.contains("[profiles.default.discord]"), "untouched");
    fake.assert_clean();
}

#[tokio::test]
async fn bots_that_talk_to_the_bot_are_answered_up_to_the_depth() {
    let fake = FakeDiscord::start().await;
    let (anna, helper, other) = (
        fake.person("anna"),
        fake.other_bot("helper"),
        fake.other_bot("other"),
    );
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\nbots = [\"{helper}\"]\nbot_depth = 2\n",
        discord(&fake)
    ))
    .await;
    let (general, bot) = (fake.general(), fake.bot());
    let call = |text: &str| format!("<@{bot}> {text}");
    for (who, text) in [
        (helper, "one"),
        (other, "not named"),
        (helper, "two"),
        (helper, "three"),
        (anna, "person"),
        (helper, "four"),
    ] {
        fake.say(general, who, call(text).as_str());
        if !matches!(text, "not named" | "three") {
            fake.wait_for_text(general, |said| said == format!("echo: {text}"))
                .await;
        }
    }
    served.stop().await;
    assert_eq!(served.sub.prompts(), ["one", "two", "person", "four"]);
    fake.assert_clean();
}

#[tokio::test]
async fn a_running_turn_comes_to_its_end_before_the_gateway_does() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\n",
        discord(&fake)
    ))
    .await;
    let go = Arc::new(Notify::new());
    served.sub.play([
        Act::text("half "),
        Act::Wait(Arc::clone(&go)),
        Act::text("and half"),
        Act::Answer,
    ]);
    let dm = fake.dm(anna);
    fake.say(dm, anna, "slowly");
    served.sub.prompts_reach(1).await;
    fake.say(dm, anna, "and this one waits");
    fake.wait_for_text(dm, |text| text.starts_with("Queued"))
        .await;
    served.ask_to_stop().await;
    served
        .said(|one| matches!(one, Said::Stopping { .. }))
        .await;
    go.notify_one();
    assert_eq!(served.ended().await, End::Stopped);
    let said = texts(&fake, dm);
    assert!(said.contains(&"half and half".to_owned()), "{said:?}");

    // What waited is on disk: the next start saves it, and the next message carries it.
    served.start(How::default()).await;
    served.ready().await;
    fake.wait_for_text(dm, |text| text.contains("Handoff saved"))
        .await;
    fake.say(dm, anna, "go on");
    fake.wait_for_text(dm, |text| text.contains("and this one waits"))
        .await;
    served.stop().await;
    assert_eq!(served.sub.prompts().len(), 2, "{:?}", served.sub.prompts());
    fake.assert_clean();
}

#[tokio::test]
async fn a_turn_that_takes_too_long_is_saved_and_said() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut served = Served::home(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\n",
        discord(&fake)
    ));
    let how = How {
        drain: Duration::from_millis(200),
        ..How::default()
    };
    served.start(how).await;
    served.ready().await;
    served.sub.play([Act::text("half"), Act::WaitForStop]);
    let dm = fake.dm(anna);
    fake.say(dm, anna, "for ever");
    served.sub.prompts_reach(1).await;
    assert_eq!(served.stop().await, End::Stopped);
    let said = texts(&fake, dm);
    assert!(
        said.iter().any(|text| text.contains("Handoff saved")),
        "{said:?}"
    );
    fake.assert_clean();
}

#[tokio::test]
async fn asked_twice_it_stops_at_once() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\n",
        discord(&fake)
    ))
    .await;
    served.sub.play([Act::text("half"), Act::WaitForStop]);
    fake.say(fake.dm(anna), anna, "for ever");
    served.sub.prompts_reach(1).await;
    served.ask_to_stop().await;
    served.ask_to_stop().await;
    assert_eq!(served.ended().await, End::CutShort);
}

#[tokio::test]
async fn slash_commands_are_answered_privately_also_to_strangers() {
    let fake = FakeDiscord::start().await;
    let (anna, eve) = (fake.person("anna"), fake.person("eve"));
    let other = fake.channel("other");
    let general = fake.general();
    let mut served = Served::serving(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\nchannels = [\"{general}\"]\n",
        discord(&fake)
    ))
    .await;
    for (channel, who, words) in [
        (general, anna, "a/m"),
        (general, eve, STRANGER_LINE),
        (general, eve, STRANGER_LINE), // it waits for an answer each time
        (other, anna, "not set up to answer here"),
    ] {
        let asked = fake.slash(channel, who, "status", &[]).unwrap();
        let answer = fake.wait_for_answer(&asked).await;
        assert!(answer.text.contains(words), "{words}: {}", answer.text);
        assert_eq!(answer.only_for, Some(who));
    }
    served.stop().await;
    assert!(served.sub.prompts().is_empty());
    fake.assert_clean();
}

#[tokio::test]
async fn on_slack_a_thread_is_its_own_and_commands_are_typed_in_it() {
    let fake = FakeSlack::start().await;
    let (anna, eve) = (fake.person("anna"), fake.person("eve"));
    let mut served = Served::serving(&format!(
        "[profiles.default.slack]\n{}users = [\"{anna}\"]\n",
        slack(&fake)
    ))
    .await;
    let general = fake.general();
    fake.duplicate_envelopes(2);
    let call = |text: &str| format!("{} {text}", fake.mention());
    let root = fake.say(&general, &anna, call("hello").as_str());
    fake.wait_for_text(&general, |text| text == "echo: hello")
        .await;
    let in_thread = |text: &str| SlackSaid {
        text: call(text),
        thread_ts: Some(root.ts.clone()),
        ..SlackSaid::default()
    };
    fake.say(&general, &anna, in_thread("over here"));
    let shown = fake
        .wait_for_text(&general, |text| text == "echo: over here")
        .await;
    assert_eq!(shown.thread_ts.as_ref(), Some(&root.ts));
    fake.say(&general, &anna, in_thread("/status"));
    fake.wait_for_private(&general, &anna, |text| text.contains("a/m"))
        .await;
    fake.say(&general, &eve, call("me too").as_str());
    fake.wait_for_private(&general, &eve, |text| text == STRANGER_LINE)
        .await;
    assert_eq!(served.stop().await, End::Stopped);
    assert_eq!(served.sub.prompts(), ["hello", "over here"]);
    fake.assert_clean();
}

#[tokio::test]
async fn both_platforms_are_served_from_one_process() {
    let (discord_fake, slack_fake) = (FakeDiscord::start().await, FakeSlack::start().await);
    let (anna, otto) = (discord_fake.person("anna"), slack_fake.person("otto"));
    let mut served = Served::home(&format!(
        "[profiles.default.discord]\n{}users = [\"{anna}\"]\n[profiles.default.slack]\n{}users = [\"{otto}\"]\n",
        discord(&discord_fake),
        slack(&slack_fake)
    ));
    served.start(How::default()).await;
    for platform in ["discord (default)", "slack (default)"] {
        served
            .said(|one| matches!(one, Said::Ready { bot } if bot == platform))
            .await;
    }
    let (here, there) = (discord_fake.dm(anna), slack_fake.dm(&otto));
    discord_fake.say(here, anna, "on discord");
    slack_fake.say(&there, &otto, "on slack");
    discord_fake
        .wait_for_text(here, |text| text == "echo: on discord")
        .await;
    slack_fake
        .wait_for_text(&there, |text| text == "echo: on slack")
        .await;
    // One platform refuses for good; the other is served on, and at the end says that none is left.
    discord_fake.close_sockets(Some(4004));
    served
        .said(|one| matches!(one, Said::Ended { bot, .. } if bot.starts_with("discord")))
        .await;
    slack_fake.say(&there, &otto, "still here?");
    slack_fake
        .wait_for_text(&there, |text| text == "echo: still here?")
        .await;
    assert_eq!(served.stop().await, End::Stopped);
}

#[tokio::test]
async fn a_bot_that_cannot_serve_is_said_and_nothing_starts() {
    let fake = FakeDiscord::builder()
        .token("another.bot.token")
        .start()
        .await;
    let mut served = Served::home(&format!(
        "[profiles.default.discord]\n{}users = [\"1\"]\n",
        discord(&fake)
    ));
    served.start(How::default()).await;
    let found = served.said(|one| matches!(one, Said::Found { .. })).await;
    assert!(
        found.to_string().starts_with("discord (default): error: "),
        "{found}"
    );
    assert_eq!(served.ended().await, End::Failed);
}
