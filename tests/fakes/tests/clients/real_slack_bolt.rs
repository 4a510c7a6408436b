//! slack_bolt 1.30 in front of the fake Slack.

use std::time::Duration;

use gateway_fakes::FakeSlack;
use gateway_fakes::python::Script;
use gateway_fakes::slack::{APP_TOKEN, BOT_TOKEN, Envelope, Fault, Said};

async fn app(fake: &FakeSlack) -> Option<Script> {
    let mut script = Script::start(
        "slack_bolt",
        "slack_client.py",
        &[&fake.api(), BOT_TOKEN, APP_TOKEN],
    )
    .await?;
    assert_eq!(script.line().await, "ready");
    fake.wait_for_sockets(1).await;
    Some(script)
}

#[tokio::test]
async fn mention_command_button_and_file() {
    let fake = FakeSlack::builder().limit_speed(20.0).start().await;
    let Some(_app) = app(&fake).await else { return };
    let (general, anna) = (fake.general(), fake.person("anna"));

    let asked = fake.say(
        &general,
        &anna,
        format!("{} hello", fake.mention()).as_str(),
    );
    let done = fake
        .wait_for_text(&general, |text| text.starts_with("done"))
        .await;
    assert_eq!(done.thread_ts.as_deref(), Some(asked.ts.as_str()));
    assert_eq!(done.earlier, ["one moment"]);
    assert!(done.pings.is_empty(), "escaped");

    let usage = fake.slash(&general, &anna, "/usage", "anna").unwrap();
    assert!(fake.wait_for_ack(&usage).await < Duration::from_secs(3));
    let private = fake.wait_for_private(&general, &anna, |_| true).await;
    assert_eq!(private.text, "4 of 5 left for anna");

    fake.slash(&general, &anna, "/model", "").unwrap();
    let posted = fake.wait_for_text(&general, |text| text == "changed").await;
    assert_eq!(posted.buttons()[0].action_id, "undo");
    let click = fake.click(&anna, &posted.at, "undo").unwrap();
    fake.wait_for_ack(&click).await;
    let undone = fake.wait_for_text(&general, |text| text == "undone").await;
    assert_eq!((&undone.at, undone.buttons().len()), (&posted.at, 0));

    fake.say(&general, &anna, "long");
    let upload = fake.wait_for("the file", |fake| {
        fake.from_bot(&general)
            .into_iter()
            .find(|message| !message.files.is_empty())
    });
    assert_eq!(upload.await.files[0].bytes, b"all of it");

    let dm = fake.dm(&anna);
    let who = fake.say(&dm, &anna, "who");
    fake.wait_for_text(&dm, |text| text == "anna 1").await;
    let reactions = fake
        .seen(&dm, None)
        .into_iter()
        .find(|message| message.at == who)
        .unwrap()
        .reactions;
    assert_eq!(reactions, ["eyes"]);
    fake.assert_clean();
}

#[tokio::test]
async fn waits_out_429_and_gets_events_again() {
    let fake = FakeSlack::builder().limit_speed(20.0).start().await;
    let Some(_app) = app(&fake).await else { return };
    let (general, anna) = (fake.general(), fake.person("anna"));
    fake.plan(
        "chat.update",
        Fault::RateLimited {
            retry_after: Duration::from_secs(1),
        },
    );
    fake.say(
        &general,
        &anna,
        Said::from(format!("{} hello", fake.mention()).as_str()),
    );
    fake.wait_for_text(&general, |text| text.starts_with("done"))
        .await;
    assert_eq!(fake.requests_to("chat.update").len(), 2);

    // The socket breaks with an event on its way: Slack sends it again when the ack is late.
    fake.reset_sockets();
    fake.say(
        &general,
        &anna,
        format!("{} again", fake.mention()).as_str(),
    );
    fake.wait_for("no socket", |fake| (fake.sockets() == 0).then_some(()))
        .await;
    fake.wait_for_sockets(1).await;
    // bolt loses what arrives while it swaps its sessions, so the first redelivery may be lost like the event was.
    for wait in [4, 64, 304] {
        fake.clock().advance(Duration::from_secs(wait));
        let again = |envelope: &Envelope| envelope.attempt > 0 && envelope.acked.is_some();
        let acked = fake.wait_for("an ack", |fake| {
            fake.envelopes().iter().any(again).then_some(())
        });
        if tokio::time::timeout(Duration::from_secs(2), acked)
            .await
            .is_ok()
        {
            break;
        }
    }
    let twice = |fake: &FakeSlack| {
        let done = fake
            .from_bot(&general)
            .into_iter()
            .filter(|message| message.text.starts_with("done"));
        (done.count() == 2).then_some(())
    };
    fake.wait_for("the second answer", twice).await;
    fake.assert_clean();
}
