//! The chat sections: what is refused with which words, and what a good one resolves to.

use std::path::Path;

use gateway_core::access::{Admission, Call, Speaker, SpeakerKind, Spot};
use gateway_core::message::Standing;
use providers::Permissions;

use super::*;

const TOKENS: &[(&str, &str)] = &[
    ("D1", "discord-one"),
    ("D2", "discord-two"),
    ("APP", "xapp-1"),
    ("BOT", "xoxb-1"),
];

fn told(sections: &str) -> String {
    let text = format!("{SMALL}{sections}");
    let root = RootPath("/r".into());
    let environment = Environment::of(Path::new("/home/p"), TOKENS);
    match check_text(&root, &environment, &text) {
        Ok(loaded) => {
            let lines = loaded.warnings.iter();
            lines
                .map(|problem| problem.to_string())
                .collect::<Vec<_>>()
                .join("\n\n")
        }
        Err(error) => error.to_string(),
    }
}

fn settings(sections: &str) -> Settings {
    let text = format!("{SMALL}{sections}");
    let environment = Environment::of(Path::new("/home/p"), TOKENS);
    let loaded = check_text(&RootPath("/r".into()), &environment, &text);
    loaded.unwrap_or_else(|error| panic!("{error}")).settings
}

#[test]
fn the_example_of_the_readme_is_understood() {
    let settings = settings(
        r#"[profiles.default.discord]
token_env = "D1"
guilds = ["111"]
channels = ["456"]
users = ["123"]
roles = []
operators = ["124"]
permissions = "read-only"
[profiles.default.slack]
app_token_env = "APP"
bot_token_env = "BOT"
users = ["U123"]
"#,
    );
    let chat = &settings.profiles[&ProfileId::new(DEFAULT_PROFILE)].chat;
    let discord = &chat[&ChatKind::Discord];
    assert_eq!(discord.permissions, Permissions::ReadOnly);
    assert_eq!(chat[&ChatKind::Slack].permissions, Permissions::None);
    assert!(!discord.show_tools);
    let spot = Spot::Channel {
        guild: Some("111"),
        channel: "456",
        parent: None,
    };
    let says = |id| {
        let speaker = Speaker {
            id,
            roles: &[],
            kind: SpeakerKind::Person,
        };
        discord.access.admit(&speaker, &spot, Call::Overheard)
    };
    assert_eq!(says("123"), Admission::Admitted(Standing::Member));
    assert_eq!(says("124"), Admission::Admitted(Standing::Operator));
}

#[test]
fn what_is_no_id_is_said_with_where_ids_are_found() {
    insta::assert_snapshot!(told(
        r##"[profiles.default.discord]
token_env = "D1"
channels = ["#general", "0"]
users = ["anna"]
[profiles.default.slack]
app_token_env = "APP"
bot_token_env = "BOT"
users = ["C123", "U1"]
channels = ["general"]
workspaces = ["U123"]
"##
    ));
}

#[test]
fn a_number_without_quotes_is_told_to_be_text() {
    let told = told("[profiles.default.discord]\ntoken_env = \"D1\"\nusers = [123]\n");
    assert!(
        told.contains("profiles.default.discord.users[1]: expected text in quotes, found a number"),
        "{told}"
    );
}

#[test]
fn tokens_are_named_once_and_never_written() {
    insta::assert_snapshot!(told(
        r#"[profiles.default.discord]
token = "abc"
users = ["1"]
[profiles.default.slack]
app_token_env = "xapp-1-A0"
bot_token_env = "BOT"
bot_token_file = "f"
users = ["U1"]
"#
    ));
}

#[test]
fn a_token_that_is_not_there_is_a_warning() {
    insta::assert_snapshot!(told(
        "[profiles.default.discord]\ntoken_env = \"GONE\"\nusers = [\"1\"]\n"
    ));
}

#[test]
fn swapped_slack_tokens_are_recognised_and_not_repeated() {
    let told = told(
        "[profiles.default.slack]\napp_token_env = \"BOT\"\nbot_token_env = \"APP\"\nusers = [\"U1\"]\n",
    );
    assert!(
        told.contains("are swapped") && !told.contains("xoxb-1"),
        "{told}"
    );
}

#[test]
fn a_bot_that_nobody_may_speak_to_is_said() {
    insta::assert_snapshot!(told(
        r#"[profiles.default.discord]
token_env = "D1"
channels = ["1"]
[profiles.default.slack]
app_token_env = "APP"
bot_token_env = "BOT"
everyone_in_channels = true
"#
    ));
}

#[test]
fn two_profiles_of_one_bot_share_no_channel_and_agree_on_the_bot() {
    insta::assert_snapshot!(told(
        r#"[profiles.default.discord]
token_env = "D1"
users = ["1"]
channels = ["7", "8"]
[profiles.work]
chain = ["a/opus"]
[profiles.work.discord]
token_env = "D1"
users = ["2"]
channels = ["8"]
commands = "guild"
guilds = ["9"]
[profiles.other]
chain = ["a/opus"]
[profiles.other.discord]
token_env = "D2"
users = ["2"]
channels = ["8"]
"#
    ));
}

#[test]
fn addresses_and_prefixes_are_checked() {
    insta::assert_snapshot!(told(
        r#"[profiles.default.discord]
token_env = "D1"
users = ["1"]
api_base = "http://198.51.100.7"
gateway_url = "http://127.0.0.1:1"
command_prefix = "Baton "
commands = "guild"
[profiles.default.slack]
app_token_env = "APP"
bot_token_env = "BOT"
users = ["U1"]
api_url = "http://127.0.0.1:1/api"
"#
    ));
}

#[test]
fn discords_address_has_no_path() {
    let told = told(
        "[profiles.default.discord]\ntoken_env = \"D1\"\nusers = [\"1\"]\napi_base = \"https://proxy.example/api\"\n",
    );
    assert!(told.contains("api_base: the address has a path"), "{told}");
}

#[test]
fn a_profile_file_holds_the_same_keys_and_all_are_shown() {
    let work = "chain = [\"a/opus\"]\n[slack]\napp_token_env = \"NOPE_A\"\nbot_token_env = \"NOPE_B\"\nusers = [\"U1\"]\n";
    let (_folder, root) = root_with(&[
        ("config.toml", SMALL, 0o600),
        ("profiles/work/config.toml", work, 0o600),
    ]);
    let loaded = load(&root, &surroundings()).unwrap();
    let shown = rows(&loaded, &surroundings());
    let of = |key: &str| {
        let path = KeyPath::of(&["profiles", "work", "slack", key]);
        let row = shown.iter().find(|row| row.key == path);
        row.map(|row| row.value.to_string())
    };
    assert_eq!(of("users").as_deref(), Some("[\"U1\"]"));
    assert_eq!(of("permissions").as_deref(), Some("\"none\""));
    let token = of("bot_token_env").unwrap();
    assert!(token.contains("NOPE_B (not usable"), "{token}");
    assert_eq!(of("bot_depth").as_deref(), Some("3"));
}
