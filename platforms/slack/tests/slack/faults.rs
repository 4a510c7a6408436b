//! What goes wrong with sockets: nothing is heard twice, nothing that Slack repeats is lost, and the rest is counted.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway_core::message::ReplyOp;
use gateway_fakes::FakeSlack;
use gateway_fakes::slack::Fault;
use platforms::adapter::{Adapter, Content};

use crate::support::{Bot, TIMING, answer, private, settings};

/// Everything heard until `last`, and how often.
async fn heard_until(bot: &mut Bot, last: &str) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    loop {
        let heard = bot.hear().await;
        let Content::Text { text, .. } = heard.content else {
            continue;
        };
        let is_last = text == last;
        *times.entry(text).or_default() += 1;
        if is_last {
            return times;
        }
    }
}

async fn wait_until_two_hear(fake: &FakeSlack, bot: &Bot) {
    fake.wait_for("two sockets that hear", |_| {
        (bot.slack.health().connections == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_socket_that_is_asked_to_leave_hears_on_until_the_next_one_does() {
    for reason in ["warning", "refresh_requested"] {
        let fake = FakeSlack::start().await;
        let mut bot = Bot::start(&fake).await;
        let (general, anna) = (fake.general(), fake.person("anna"));
        let before = fake.requests_to("apps.connections.open").len();
        assert_eq!(fake.ask_to_disconnect(reason), 2);
        // Late envelopes come on the old sockets, also a command, which Slack sends only once.
        fake.send_late(2);
        fake.say(&general, &anna, "late");
        let asked = fake.slash(&general, &anna, "/usage", "").unwrap();
        assert!(
            fake.wait_for_ack(&asked).await < Duration::from_secs(3),
            "{reason}"
        );
        fake.wait_for("new sockets beside the old ones", |fake| {
            (fake.requests_to("apps.connections.open").len() == before + 2).then_some(())
        })
        .await;
        wait_until_two_hear(&fake, &bot).await;
        fake.say(&general, &anna, "after");
        let times = heard_until(&mut bot, "after").await;
        assert_eq!(times["late"], 1, "{reason}");
        let health = bot.slack.health();
        assert_eq!(
            (health.resumed, health.begun_anew, health.gaps),
            (2, 0, 0),
            "{reason}"
        );
        // The old ones are closed by us in the end.
        fake.wait_for("the old sockets' end", |fake| {
            (fake.sockets() == 2).then_some(())
        })
        .await;
        assert_eq!(bot.slack.foreign_connections(), 0);
        bot.stop().await.unwrap();
        fake.assert_clean();
    }
}

#[tokio::test]
async fn breaks_of_any_kind_lose_no_event_and_repeat_none() {
    type Break = fn(&FakeSlack) -> usize;
    let rows: [(&str, Break); 3] = [
        ("reset", FakeSlack::reset_sockets),
        ("closed", FakeSlack::close_sockets),
        ("silent", FakeSlack::silence_sockets),
    ];
    for (name, break_it) in rows {
        let fake = FakeSlack::start().await;
        let mut bot = Bot::start(&fake).await;
        let (general, anna) = (fake.general(), fake.person("anna"));
        fake.say(&general, &anna, "before");
        heard_until(&mut bot, "before").await;
        assert_eq!(break_it(&fake), 2, "{name}");
        for n in 0..5 {
            fake.say(&general, &anna, format!("meanwhile {n}").as_str());
        }
        fake.wait_for("a gap that is counted", |_| {
            (bot.slack.health().gaps >= 2).then_some(())
        })
        .await;
        wait_until_two_hear(&fake, &bot).await;
        // What was sent into the void comes again after 3 s.
        fake.clock().advance(Duration::from_secs(4));
        let mut left: BTreeMap<String, usize> =
            (0..5).map(|n| (format!("meanwhile {n}"), 0)).collect();
        while left.values().any(|times| *times == 0) {
            if let Content::Text { text, .. } = bot.hear().await.content {
                *left.get_mut(&text).expect("nothing else was said") += 1;
            }
        }
        fake.say(&general, &anna, "after");
        assert_eq!(heard_until(&mut bot, "after").await.len(), 1, "{name}");
        assert!(left.values().all(|times| *times == 1), "{name}: {left:?}");
        let health = bot.slack.health();
        assert_eq!(health.resumed + health.begun_anew, 2, "{name}: {health:?}");
        bot.stop().await.unwrap();
        fake.assert_clean();
    }
}

#[tokio::test]
async fn a_command_into_a_dead_socket_is_a_gap_and_is_not_made_up() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.silence_sockets();
    let asked = fake.slash(&general, &anna, "/usage", "").unwrap();
    fake.wait_for("a gap", |_| (bot.slack.health().gaps == 2).then_some(()))
        .await;
    wait_until_two_hear(&fake, &bot).await;
    assert!(fake.acked_after(&asked).is_none());
    fake.say(&general, &anna, "after");
    let heard = bot.hear().await;
    assert!(matches!(heard.content, Content::Text { .. }));
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn every_delivery_of_one_thing_is_heard_once() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.duplicate_envelopes(2);
    let at = fake.say(
        &general,
        &anna,
        format!("{} twice", fake.mention()).as_str(),
    );
    bot.hear().await;
    // Under new event ids, as Slack does after a slow acknowledgement of its own.
    fake.repeat(&at);
    fake.duplicate_envelopes(1);
    fake.slash(&general, &anna, "/usage", "").unwrap();
    let command = bot.hear().await;
    assert!(
        matches!(command.content, Content::Command { .. }),
        "{command:?}"
    );
    fake.say(&general, &anna, "after");
    assert!(matches!(bot.hear().await.content, Content::Text { text, .. } if text == "after"));
    assert!(bot.is_silent());
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn acknowledgements_do_not_wait_for_whoever_listens() {
    let fake = FakeSlack::start().await;
    // One thing may wait for the test; it takes none for 20 s.
    let mut bot = Bot::start_with(&fake, settings(&fake), 1).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    for n in 0..50 {
        fake.say(&general, &anna, format!("{n}").as_str());
    }
    let asked = fake.slash(&general, &anna, "/usage", "").unwrap();
    assert!(fake.wait_for_ack(&asked).await < Duration::from_secs(3));
    fake.wait_for("every acknowledgement", |fake| {
        fake.envelopes()
            .iter()
            .all(|one| one.acked.is_some())
            .then_some(())
    })
    .await;
    fake.clock().advance(Duration::from_secs(20));
    for _ in 0..51 {
        bot.hear().await;
    }
    assert!(
        fake.envelopes().iter().all(|one| one.attempt == 0),
        "nothing came again"
    );
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn socket_mode_switched_off_is_the_end_and_says_so() {
    let fake = FakeSlack::start().await;
    let bot = Bot::start(&fake).await;
    fake.ask_to_disconnect("link_disabled");
    let ended = bot.ended().await.unwrap_err();
    insta::assert_snapshot!(ended, @"Slack says that Socket Mode was switched off for this app. Switch it on (app settings > Socket Mode) and start again.");
    fake.assert_clean();
}

#[tokio::test]
async fn too_many_sockets_means_a_long_pause() {
    let fake = FakeSlack::start().await;
    let bot = Bot::start(&fake).await;
    let before = fake.requests_to("apps.connections.open").len();
    fake.ask_to_disconnect("too_many_websockets");
    let began = tokio::time::Instant::now();
    fake.wait_for("the end of both", |fake| {
        (fake.sockets() == 0).then_some(())
    })
    .await;
    assert_eq!(fake.requests_to("apps.connections.open").len(), before);
    wait_until_two_hear(&fake, &bot).await;
    assert!(began.elapsed() >= TIMING.crowded_pause * 8 / 10);
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_token_revoked_while_it_runs_is_the_end_and_a_fault_of_slacks_is_not() {
    let fake = FakeSlack::start().await;
    let bot = Bot::start(&fake).await;
    for fault in [
        Fault::ServerError,
        Fault::Cut,
        Fault::Error("internal_error"),
        Fault::RateLimited {
            retry_after: Duration::from_secs(1),
        },
    ] {
        fake.plan("apps.connections.open", fault);
    }
    fake.reset_sockets();
    fake.wait_for("the break", |_| {
        (bot.slack.health().gaps == 2).then_some(())
    })
    .await;
    wait_until_two_hear(&fake, &bot).await;
    fake.plan("apps.connections.open", Fault::Error("token_revoked"));
    fake.reset_sockets();
    let ended = bot.ended().await.unwrap_err();
    assert!(
        ended.what.contains("token_revoked") && !ended.hint.is_empty(),
        "{ended}"
    );
    fake.assert_clean();
}

#[tokio::test]
async fn another_instance_is_noticed() {
    let fake = FakeSlack::start().await;
    let first = Bot::start(&fake).await;
    assert_eq!(first.slack.foreign_connections(), 0);
    let second = Bot::start(&fake).await;
    assert_eq!(second.slack.foreign_connections(), 2);
    second.stop().await.unwrap();
    first.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn what_nobody_understands_is_acknowledged_and_counted() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let general = fake.general();
    fake.send_text("not JSON");
    fake.send_text(r#"{"type":"of_next_year"}"#);
    fake.send_event(
        serde_json::json!({ "type": "message", "channel": general, "ts": [], "user": {} }),
    );
    fake.send_event(
        serde_json::json!({ "type": "message", "channel": general, "user": "U1", "text": "no ts" }),
    );
    fake.wait_for("the counts", |_| {
        (bot.slack.health().unreadable == 6).then_some(())
    })
    .await;
    fake.wait_for("every acknowledgement", |fake| {
        fake.envelopes()
            .iter()
            .all(|one| one.acked.is_some())
            .then_some(())
    })
    .await;
    assert!(bot.is_silent());
    assert_eq!(bot.slack.health().connections, 2, "the sockets stay");
    bot.stop().await.unwrap();
    fake.violations().take(); // the fake notes that it sent no event of Slack's
}

#[tokio::test]
async fn a_limit_in_the_middle_of_a_stream_does_not_cost_the_final_text() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.say(&general, &anna, "go");
    let heard = bot.hear().await;
    let limit = || Fault::RateLimited {
        retry_after: Duration::from_secs(1),
    };
    fake.plan("chat.postMessage", limit());
    for _ in 0..2 {
        fake.plan("chat.update", limit());
    }
    bot.deliver(&heard, Some("t"), answer("one", false)).await;
    fake.wait_for_text(&general, |text| text == "one").await;
    bot.deliver(&heard, Some("t"), answer("one two", false))
        .await;
    fake.wait_for("the limit on edits", |fake| {
        fake.requests_to("chat.update")
            .iter()
            .any(|one| one.status == 429)
            .then_some(())
    })
    .await;
    bot.deliver(&heard, Some("t"), answer("one two three", true))
        .await;
    fake.wait_for_text(&general, |text| text == "one two three")
        .await;
    assert_eq!(fake.from_bot(&general).len(), 1);
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_post_of_unknown_fate_is_looked_for_and_stands_once() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.say(&general, &anna, "go");
    let heard = bot.hear().await;
    for (n, fault) in [Fault::Lost, Fault::ServerError, Fault::Cut]
        .into_iter()
        .enumerate()
    {
        fake.plan("chat.postMessage", fault);
        let text = format!("answer {n}");
        bot.deliver(&heard, Some(&text), answer(&text, true)).await;
        bot.chat.drained().await;
        let shown = fake.from_bot(&general);
        let same = shown.iter().filter(|one| one.text == text).count();
        assert_eq!(same, 1, "{text}: {shown:?}");
    }
    assert_eq!(fake.requests_to("conversations.history").len(), 3);
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn an_answer_that_slack_limits_is_waited_for() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.slash(&general, &anna, "/usage", "").unwrap();
    let heard = bot.hear().await;
    fake.plan(
        "response_url",
        Fault::RateLimited {
            retry_after: Duration::from_secs(1),
        },
    );
    bot.deliver(&heard, None, private("used")).await;
    fake.wait_for_private(&general, &anna, |text| text == "used")
        .await;
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_response_url_that_is_spent_or_old_is_not_the_end_of_the_answer() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.slash(&general, &anna, "/usage", "").unwrap();
    let heard = bot.hear().await;
    for n in 0..7 {
        bot.deliver(&heard, None, private(&format!("answer {n}")))
            .await;
    }
    fake.wait_for_private(&general, &anna, |text| text == "answer 6")
        .await;
    assert_eq!(fake.private(&general, &anna).len(), 7);
    assert_eq!(fake.requests_to("chat.postEphemeral").len(), 2);

    fake.slash(&general, &anna, "/usage", "").unwrap();
    let heard = bot.hear().await;
    fake.clock().advance(Duration::from_secs(31 * 60));
    bot.deliver(&heard, None, private("late")).await;
    fake.wait_for_private(&general, &anna, |text| text == "late")
        .await;
    assert!(fake.from_bot(&general).is_empty());
    bot.stop().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn what_was_acknowledged_is_handed_on_when_listening_ends() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start_with(&fake, settings(&fake), 1).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    for n in 0..20 {
        fake.say(&general, &anna, format!("{n}").as_str());
    }
    fake.wait_for("every acknowledgement", |fake| {
        fake.envelopes()
            .iter()
            .all(|one| one.acked.is_some())
            .then_some(())
    })
    .await;
    bot.cancel();
    let mut count = 0;
    while bot.heard.recv().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 20);
    bot.ended().await.unwrap();
    fake.assert_clean();
}

#[tokio::test]
async fn a_notice_outside_of_any_turn_arrives_too() {
    let fake = FakeSlack::start().await;
    let mut bot = Bot::start(&fake).await;
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.say(&general, &anna, "go");
    let heard = bot.hear().await;
    let text = "stopped".to_owned();
    bot.deliver(&heard, None, ReplyOp::Notice { text }).await;
    fake.wait_for_text(&general, |text| text == "stopped").await;
    bot.stop().await.unwrap();
    fake.assert_clean();
}
