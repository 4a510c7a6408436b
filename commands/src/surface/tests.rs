use std::collections::BTreeSet;

use gateway_core::message::Audience;

use super::*;
use crate::specs;

fn table() -> Vec<&'static CommandSpec> {
    specs().collect()
}

fn spec(name: &'static str, aliases: &'static [&'static str]) -> CommandSpec {
    CommandSpec {
        name,
        aliases,
        summary: "Does something.",
        argument: "",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    }
}

/// `count` commands with names that live as long as the program.
fn many(count: usize) -> Vec<&'static CommandSpec> {
    let one = |n: usize| -> &'static CommandSpec {
        let name: &'static str = Box::leak(format!("c{n}").into_boxed_str());
        Box::leak(Box::new(spec(name, &[])))
    };
    (0..count).map(one).collect()
}

/// Every command of the table, by its name and its aliases, is registered or said to be demoted, on both platforms.
#[test]
fn no_platform_silently_misses_a_command() {
    let all: BTreeSet<String> = names(&table(), "")
        .into_iter()
        .map(|one| one.name)
        .collect();
    let on_discord = discord::fit(&table(), "").unwrap();
    let reached = on_discord.commands.iter().map(|one| one.name.clone());
    let demoted = on_discord.demoted.iter().map(|one| one.name.clone());
    assert_eq!(reached.chain(demoted).collect::<BTreeSet<_>>(), all);

    let on_slack = slack::fit(&table(), "", slack::BEHIND_BATON).unwrap();
    let reached = on_slack
        .commands
        .iter()
        .map(|one| one.command.trim_start_matches('/').to_owned());
    let demoted = on_slack.demoted.iter().map(|one| one.name.clone());
    let with_baton: BTreeSet<String> = all.into_iter().chain([BATON.to_owned()]).collect();
    assert_eq!(reached.chain(demoted).collect::<BTreeSet<_>>(), with_baton);
}

#[test]
fn discord_gets_one_option_where_a_command_takes_an_argument() {
    let commands = discord::fit(&table(), "").unwrap().commands;
    let model = commands.iter().find(|one| one.name == "model").unwrap();
    assert_eq!(model.options[0].description, "[sub/model | auto]");
    let help = commands.iter().find(|one| one.name == "help").unwrap();
    assert!(help.options.is_empty() && help.kind == 1 && help.contexts == [0, 1]);
    assert!(
        commands.iter().any(|one| one.name == "resume_handoff"),
        "the alias too"
    );
}

#[test]
fn a_prefix_parts_our_names_from_those_of_another_bot() {
    let commands = discord::fit(&table(), "b-").unwrap().commands;
    assert!(commands.iter().all(|one| one.name.starts_with("b-")));
}

#[test]
fn what_does_not_fit_is_an_error_that_names_it() {
    let said = |misfits: Vec<Misfit>| misfits.iter().map(ToString::to_string).collect::<Vec<_>>();
    let long: &'static str = Box::leak("x".repeat(101).into_boxed_str());
    let bad = [
        spec("Bad Name", &[]),
        spec("two", &["two"]),
        CommandSpec {
            summary: long,
            ..spec("wordy", &[])
        },
    ];
    let bad: Vec<&CommandSpec> = bad.iter().collect();
    assert_eq!(
        said(discord::fit(&bad, "").unwrap_err()),
        [
            "/Bad Name: Discord takes names of 1 to 32 of a-z, 0-9, _ and - only",
            "/wordy: Discord takes descriptions of 1 to 100 characters",
            "/two would be registered twice on Discord; rename one of the two",
        ]
    );
    assert_eq!(
        said(slack::fit(&[&spec("baton", &[])], "", &["gone"]).unwrap_err()),
        [
            "/gone is listed to go behind /baton on Slack, but there is no such command",
            "/baton would be registered twice on Slack; rename one of the two",
        ]
    );
}

#[test]
fn slack_has_fifty_places_and_the_list_decides_who_gets_none() {
    let table = many(50);
    let refused = slack::fit(&table, "", &[]).unwrap_err();
    assert_eq!(refused.len(), 1);
    insta::assert_snapshot!(refused[0], @"/c49 does not fit: Slack takes 50 commands; put it or another one into the list of what goes behind /baton");
    let fitted = slack::fit(&table, "", &["c7"]).unwrap();
    assert_eq!(fitted.commands.len(), 50);
    insta::assert_snapshot!(fitted.demoted[0], @"/c7 is reached as /baton c7 (listed for it)");
}

#[test]
fn what_slack_keeps_for_itself_goes_behind_baton_unless_a_prefix_parts_it() {
    let fitted = slack::fit(&table(), "", slack::BEHIND_BATON).unwrap();
    let demoted: Vec<String> = fitted.demoted.iter().map(ToString::to_string).collect();
    assert_eq!(
        demoted,
        ["/status is reached as /baton status (the platform has its own)"]
    );
    assert!(fitted.commands.iter().all(|one| one.command != "/status"));
    let fitted = slack::fit(&table(), "b-", slack::BEHIND_BATON).unwrap();
    assert!(fitted.demoted.is_empty());
    assert!(fitted.commands.iter().any(|one| one.command == "/b-status"));
}

#[test]
fn aliases_give_way_before_commands_and_are_reported() {
    let with_alias = spec("first", &["first-alias"]);
    for count in [48, 99] {
        let mut table = vec![&with_alias];
        table.extend(many(count));
        let on_discord = discord::fit(&table, "").unwrap();
        assert_eq!(on_discord.demoted.len(), usize::from(count == 99));
        if count == 48 {
            let on_slack = slack::fit(&table, "", &[]).unwrap();
            insta::assert_snapshot!(on_slack.demoted[0], @"/first-alias is reached as /baton first-alias (an alias beyond the platform's cap)");
        }
    }
    let beyond = discord::fit(&many(101), "").unwrap_err();
    assert_eq!(beyond[0].why, Unfit::BeyondCap { max: 100 });
}

#[test]
fn a_command_counts_its_bytes() {
    let command = discord::DiscordCommand {
        name: "é".to_owned(),
        kind: 1,
        description: "four".to_owned(),
        options: Vec::new(),
        contexts: Vec::new(),
    };
    assert_eq!(command.size(), 6);
    assert!(
        discord::fit(&table(), "")
            .unwrap()
            .commands
            .iter()
            .all(|one| one.size() <= discord::SIZE_MAX)
    );
}

#[test]
fn what_is_registered_is_changed_by_the_fewest_steps_deletions_first() {
    use discord::{DiscordCommand, Registered, Step, steps};
    let want = discord::fit(&table(), "").unwrap().commands;
    let have = |commands: &[DiscordCommand]| -> Vec<Registered> {
        let registered = |(id, command): (usize, &DiscordCommand)| Registered {
            id: id.to_string(),
            command: command.clone(),
        };
        commands.iter().enumerate().map(registered).collect()
    };
    assert!(
        steps(&want, &have(&want)).is_empty(),
        "the same table registers nothing"
    );
    assert_eq!(steps(&want, &[]).len(), want.len());

    let mut old = want.clone();
    old[0].description = "Older words.".to_owned();
    old[1].name = "renamed".to_owned();
    let taken = steps(&want, &have(&old));
    assert_eq!(
        taken,
        [
            Step::Delete {
                id: "1".to_owned(),
                name: "renamed".to_owned()
            },
            Step::Change {
                id: "0".to_owned(),
                command: want[0].clone()
            },
            Step::Create(want[1].clone()),
        ]
    );
    let cleaned = steps(&[], &have(&want));
    assert_eq!(cleaned.len(), want.len());
    assert!(
        cleaned
            .iter()
            .all(|step| matches!(step, Step::Delete { .. }))
    );
}

#[test]
fn behind_baton_stands_a_command_and_its_line() {
    let rows = [
        ("", ("help", "")),
        ("  ", ("help", "")),
        ("usage", ("usage", "")),
        (" /model  sub/m ", ("model", "sub/m")),
        ("resume-handoff", ("resume-handoff", "")),
    ];
    for (text, want) in rows {
        assert_eq!(slack::behind_baton(text), want, "{text:?}");
    }
}
