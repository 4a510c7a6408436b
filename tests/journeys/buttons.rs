//! Buttons: an undo of a `/model` choice works once, for those who may, after a restart and in any gateway of the root.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::message::{Audience, Button, Content, Inbound, Origin, ReplyOp, Standing};
use gateway_host::store::fault::Method;
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::{Gateway, Parts};
use jiff::SignedDuration;
use platforms::recording::Record;
use providers::SharedProvider;
use support::{World, baton};

async fn world() -> World {
    World::builder()
        .plan("a")
        .plan("b")
        .metered("c")
        .build()
        .await
}

fn buttons(record: &Record) -> Vec<Button> {
    let of = |op: &ReplyOp| match op {
        ReplyOp::Reply { buttons, .. } => buttons.clone(),
        _ => Vec::new(),
    };
    record
        .delivered
        .iter()
        .flat_map(|one| of(&one.op))
        .collect()
}

/// Chooses a route; the button under the answer.
async fn choose(world: &mut World, route: &str) -> Button {
    world.command(&format!("model {route}")).await;
    let shown = buttons(&world.surface.record());
    shown.last().expect("a choice can be undone").clone()
}

fn press_by(world: &mut World, button: &Button, who: &str, standing: Standing) -> Inbound {
    let content = Content::Press {
        custom_id: button.custom_id.clone(),
    };
    let mut inbound = world.inbound(content, Origin::Human);
    inbound.sender.id = who.into();
    inbound.sender.standing = standing;
    inbound
}

/// Ann, a member, presses.
fn press(world: &mut World, button: &Button) -> Inbound {
    press_by(world, button, "ann", Standing::Member)
}

/// What a press led to: what was said to whom, and how many messages lost their buttons.
async fn pressed(world: &World, inbound: Inbound) -> (Vec<String>, usize) {
    let before = world.surface.record().delivered.len();
    world.gateway().receive(inbound).await;
    since(world, before)
}

fn since(world: &World, before: usize) -> (Vec<String>, usize) {
    let record = world.surface.record();
    let new = record.delivered.iter().skip(before).map(|one| &one.op);
    let (mut said, mut settled) = (Vec::new(), 0);
    for op in new {
        match op {
            ReplyOp::Reply { text, audience, .. } => {
                assert_eq!(*audience, Audience::Asker, "{text}");
                said.push(text.clone());
            }
            ReplyOp::Settle { text: None } => settled += 1,
            other => panic!("a press shows {other:?}"),
        }
    }
    (said, settled)
}

async fn chosen(world: &mut World) -> String {
    let shown = world.command("model").await;
    shown.lines().next().expect("a line").to_owned()
}

const BY_THE_CHAIN: &str =
    "The chain decides. `/model sub/model` chooses one route for this conversation.";

/// Another gateway of the same root that shows on the same surface.
async fn another(world: &World) -> Gateway {
    let file = world.settings.root.store_file();
    let store = SqliteStore::open(&file).await.expect("the store opens");
    let provider = |name: &str| Arc::new(world.sub(name).clone()) as SharedProvider;
    let names = ["a", "b", "c"];
    let providers: BTreeMap<_, _> = names
        .iter()
        .map(|name| ((*name).into(), provider(name)))
        .collect();
    let parts = Parts {
        settings: world.settings.clone(),
        clock: Arc::new(world.clock.clone()),
        store: Arc::new(store),
        platforms: vec![world.surface.clone()],
        providers,
        executable: baton(),
    };
    Gateway::start(parts)
        .await
        .expect("a second gateway starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_works_after_a_restart_and_only_once() {
    let mut world = world().await;
    let undo = choose(&mut world, "b/m").await;
    assert_eq!(undo.label, "Undo");
    assert!(undo.custom_id.len() <= 100);
    world.restart().await;
    let first = press(&mut world, &undo);
    let undone = vec!["Undone: the chain decides again.".to_owned()];
    assert_eq!(pressed(&world, first.clone()).await, (undone, 1));
    assert_eq!(chosen(&mut world).await, BY_THE_CHAIN);
    // Delivered again: nothing, not even words.
    assert_eq!(pressed(&world, first).await, (vec![], 0));
    // Pressed again, by what another client still shows.
    let again = press(&mut world, &undo);
    let said = vec!["This was done already. Type /model instead.".to_owned()];
    assert_eq!(pressed(&world, again).await, (said, 1));
    assert_eq!(chosen(&mut world).await, BY_THE_CHAIN);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_goes_back_to_the_choice_before() {
    let mut world = world().await;
    choose(&mut world, "b/m").await;
    let undo = choose(&mut world, "auto").await;
    let inbound = press(&mut world, &undo);
    let undone = vec!["Undone: b/m is chosen for this conversation again.".to_owned()];
    assert_eq!(pressed(&world, inbound).await, (undone, 1));
    assert!(
        chosen(&mut world)
            .await
            .starts_with("Chosen for this conversation: b/m.")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_that_hear_one_button_act_once() {
    let mut world = world().await;
    let other = another(&world).await;
    for round in 0..8 {
        let undo = choose(&mut world, "b/m").await;
        let before = world.surface.record().delivered.len();
        // Two presses, and each of them delivered to both.
        let (one, two) = (press(&mut world, &undo), press(&mut world, &undo));
        tokio::join!(
            world.gateway().receive(one.clone()),
            other.receive(one),
            world.gateway().receive(two.clone()),
            other.receive(two),
        );
        let (mut said, settled) = since(&world, before);
        said.sort();
        let want = [
            "This was done already. Type /model instead.",
            "Undone: the chain decides again.",
        ];
        assert_eq!(
            (said.as_slice(), settled),
            (want.map(str::to_owned).as_slice(), 2),
            "{round}"
        );
        assert_eq!(chosen(&mut world).await, BY_THE_CHAIN);
    }
    other.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_is_for_the_asker_and_for_operators() {
    let mut world = world().await;
    let undo = choose(&mut world, "b/m").await;
    let stranger = press_by(&mut world, &undo, "bob", Standing::Member);
    let refused = "This button is for the person it was shown to, or for an operator.";
    assert_eq!(
        pressed(&world, stranger).await,
        (vec![refused.to_owned()], 0)
    );
    assert!(chosen(&mut world).await.contains("b/m"), "nothing was done");
    let operator = press_by(&mut world, &undo, "olga", Standing::Operator);
    let (said, settled) = pressed(&world, operator).await;
    assert_eq!((said.len(), settled), (1, 1));
    assert_eq!(chosen(&mut world).await, BY_THE_CHAIN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_came_too_late_says_what_to_type() {
    let mut world = world().await;
    let expired = choose(&mut world, "b/m").await;
    world.pass(SignedDuration::from_hours(24));
    let inbound = press(&mut world, &expired);
    let said = vec!["This button is no longer valid. Type /model instead.".to_owned()];
    assert_eq!(pressed(&world, inbound).await, (said.clone(), 1));
    assert!(chosen(&mut world).await.contains("b/m"));

    let older = choose(&mut world, "a/m").await;
    choose(&mut world, "b/m").await;
    let inbound = press(&mut world, &older);
    let newer =
        "Something newer was chosen since; this button is no longer valid. Type /model instead.";
    assert_eq!(pressed(&world, inbound).await, (vec![newer.to_owned()], 1));
    assert!(chosen(&mut world).await.contains("b/m"));

    // In a new conversation there is nothing it could undo.
    let left = choose(&mut world, "a/m").await;
    world.command("new").await;
    world.command("model a/m").await;
    let inbound = press(&mut world, &left);
    assert_eq!(pressed(&world, inbound).await, (vec![newer.to_owned()], 1));
    assert!(chosen(&mut world).await.contains("a/m"));

    // Of another version, or nobody's.
    for custom_id in ["baton2:undo-model:0123456789abcdef", "vote:1"] {
        let button = Button {
            label: String::new(),
            custom_id: custom_id.into(),
        };
        let inbound = press(&mut world, &button);
        let (said, settled) = pressed(&world, inbound).await;
        assert_eq!(said, ["This button is no longer valid."], "{custom_id}");
        assert_eq!(settled, 1);
    }
}

// A metered route never comes back by a member's press.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_operator_undoes_back_to_a_route_that_costs_money() {
    let mut world = world().await;
    choose(&mut world, "c/m").await;
    let undo = choose(&mut world, "a/m").await; // Ann is an operator when she types
    let member = press(&mut world, &undo);
    let (said, settled) = pressed(&world, member).await;
    assert!(said[0].contains("costs money"), "{said:?}");
    assert_eq!(settled, 0);
    assert!(chosen(&mut world).await.contains("a/m"));
    let operator = press_by(&mut world, &undo, "ann", Standing::Operator);
    pressed(&world, operator).await;
    assert!(chosen(&mut world).await.contains("c/m"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_whose_button_cannot_be_kept_is_not_made() {
    let mut world = world().await;
    world.faults.fail(&[Method::ChooseRouteUndoably]);
    let inbound = world.inbound(
        Content::Command {
            name: "model".into(),
            args: "b/m".into(),
        },
        Origin::Human,
    );
    world.gateway().receive(inbound).await;
    world.faults.heal();
    assert!(buttons(&world.surface.record()).is_empty());
    assert_eq!(chosen(&mut world).await, BY_THE_CHAIN);
}
