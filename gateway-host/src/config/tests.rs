//! Bad configurations and the exact words a person gets for each; and what a good one resolves to.

mod chat;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gateway_core::ids::{ProfileId, SubscriptionId};
use gateway_core::route::Billing;

use super::*;

/// Name of the rule, the file, what a person is told.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "unknown_keys_are_all_named_with_the_nearest",
        r##"subscription = 1
[subscriptions.a]
provider = "claude"
hoem = "~/x"
[profiles.default]
chian = ["a/opus"]
colour = "red"
"##,
        r##"error: unknown key "subscription" (did you mean "subscriptions"?)
 --> /r/config.toml:1:1
  |
1 | subscription = 1
  | ^^^^^^^^^^^^
  = next: known here: subscriptions, profiles, plugins, usage

error: subscriptions.a: unknown key "hoem" (did you mean "home"?)
 --> /r/config.toml:4:1
  |
4 | hoem = "~/x"
  | ^^^^
  = next: known here: provider, slug, billing, home, binary, env, base_url, key_env, key_file, max_tokens, price

error: profiles.default: unknown key "chian" (did you mean "chain"?)
 --> /r/config.toml:6:1
  |
6 | chian = ["a/opus"]
  | ^^^^^
  = next: known here: chain, workdir, permissions, plugins, attempt_deadline, silence, routing, discord, slack

error: profiles.default: unknown key "colour"
 --> /r/config.toml:7:1
  |
7 | colour = "red"
  | ^^^^^^
  = next: known here: chain, workdir, permissions, plugins, attempt_deadline, silence, routing, discord, slack"##,
    ),
    (
        "a_literal_secret_is_not_repeated",
        r##"[subscriptions.a]
provider = "openai"
base_url = "https://h/v1"
api_key = "sk-very-secret"
[profiles.default]
chain = ["a/opus"]
"##,
        r##"error: subscriptions.a: unknown key "api_key"
 --> /r/config.toml:4:1
  | (not shown: the line may hold a secret)
  = next: secrets are named, never written: put the key into an environment variable and name it with key_env, or into a file of yours alone (0600) and name it with key_file"##,
    ),
    (
        "wrong_types",
        r##"[subscriptions.a]
provider = 3
env = ["x"]
[profiles.default]
chain = ["a/opus", 7]
plugins = { quota = { enabled = "yes", budget_ms = { on_walk = -1 } } }
"##,
        r##"error: subscriptions.a.provider: expected one of claude, codex, opencode, anthropic, openai, found a number
 --> /r/config.toml:2:12
  |
2 | provider = 3
  |            ^

error: subscriptions.a.env: expected a section, found a list
 --> /r/config.toml:3:7
  |
3 | env = ["x"]
  |       ^^^^^

error: profiles.default.chain[2]: expected text in quotes, found a number
 --> /r/config.toml:5:20
  |
5 | chain = ["a/opus", 7]
  |                    ^

error: profiles.default.plugins.quota.enabled: expected true or false, found text
 --> /r/config.toml:6:33
  |
6 | plugins = { quota = { enabled = "yes", budget_ms = { on_walk = -1 } } }
  |                                 ^^^^^

error: profiles.default.plugins.quota.budget_ms.on_walk: expected a whole number from 0, found -1
 --> /r/config.toml:6:64
  |
6 | plugins = { quota = { enabled = "yes", budget_ms = { on_walk = -1 } } }
  |                                                                ^^"##,
    ),
    (
        "a_word_that_is_not_one_of_the_words",
        r##"[subscriptions.a]
provider = "cluade"
billing = "free"
[profiles.default]
chain = ["a/opus"]
permissions = "readonly"
"##,
        r##"error: subscriptions.a.provider: "cluade" is not one of claude, codex, opencode, anthropic, openai (did you mean "claude"?)
 --> /r/config.toml:2:12
  |
2 | provider = "cluade"
  |            ^^^^^^^^

error: subscriptions.a.billing: "free" is not one of plan, metered
 --> /r/config.toml:3:11
  |
3 | billing = "free"
  |           ^^^^^^

error: profiles.default.permissions: "readonly" is not one of none, read-only, edit, full (did you mean "read-only"?)
 --> /r/config.toml:6:15
  |
6 | permissions = "readonly"
  |               ^^^^^^^^^^"##,
    ),
    (
        "unknown_subscription_in_a_chain",
        r##"[subscriptions.claude-work]
provider = "claude"
[profiles.default]
chain = ["claude-work/opus", "claude-wrok/opus", "zzz/x", "Claude-Work/sonnet"]
"##,
        r##"error: profiles.default.chain[2]: there is no subscription "claude-wrok" (did you mean "claude-work"?)
 --> /r/config.toml:4:30
  |
4 | chain = ["claude-work/opus", "claude-wrok/opus", "zzz/x", "Claude-Work/sonnet"]
  |                              ^^^^^^^^^^^^^^^^^^
  = next: add [subscriptions.claude-wrok], or take the entry out of the chain

error: profiles.default.chain[3]: there is no subscription "zzz"
 --> /r/config.toml:4:50
  |
4 | chain = ["claude-work/opus", "claude-wrok/opus", "zzz/x", "Claude-Work/sonnet"]
  |                                                  ^^^^^^^
  = next: add [subscriptions.zzz], or take the entry out of the chain"##,
    ),
    (
        "route_forms_and_twice",
        r##"[subscriptions.a]
provider = "claude"
[profiles.default]
chain = ["a", "/opus", "a/opus", "a/opus"]
"##,
        r##"error: profiles.default.chain[1]: "a" is not a route
 --> /r/config.toml:4:10
  |
4 | chain = ["a", "/opus", "a/opus", "a/opus"]
  |          ^^^
  = next: write it as subscription/model, for example a/opus

error: profiles.default.chain[2]: "/opus" is not a route
 --> /r/config.toml:4:15
  |
4 | chain = ["a", "/opus", "a/opus", "a/opus"]
  |               ^^^^^^^
  = next: write it as subscription/model, for example a/opus

warning: profiles.default.chain[4]: a/opus stands in the chain twice
 --> /r/config.toml:4:34
  |
4 | chain = ["a", "/opus", "a/opus", "a/opus"]
  |                                  ^^^^^^^^
  = next: the second is never reached; take it out"##,
    ),
    (
        "an_empty_chain",
        r##"[subscriptions.a]
provider = "claude"
[profiles.default]
chain = []
[profiles.work]
"##,
        r##"error: profiles.default.chain: the chain is empty: nothing could answer
 --> /r/config.toml:4:9
  |
4 | chain = []
  |         ^^
  = next: name at least one route, as subscription/model

error: profiles.work: the chain is missing
 --> /r/config.toml:5:11
  |
5 | [profiles.work]
  |           ^^^^
  = next: add chain = ["subscription/model"]; the first entry that is not spent answers"##,
    ),
    (
        "nothing_written",
        r##""##,
        r##"error: there is no profile
  = next: add [profiles.default] with chain = ["subscription/model"], or run `baton init`"##,
    ),
    (
        "provider_missing",
        r##"[subscriptions.a]
home = "~/c"
[profiles.default]
chain = ["a/opus"]
"##,
        r##"error: subscriptions.a: the provider is missing
 --> /r/config.toml:1:16
  |
1 | [subscriptions.a]
  |                ^
  = next: add provider = "claude", "codex", "opencode", "anthropic" or "openai""##,
    ),
    (
        "names_that_differ_in_case",
        r##"[subscriptions.a]
provider = "claude"
[subscriptions.A]
provider = "claude"
[profiles.default]
chain = ["a/opus"]
"##,
        r##"error: subscriptions.a: "a" and "A" differ only in case or surrounding space
 --> /r/config.toml:1:16
  |
1 | [subscriptions.a]
  |                ^
  = next: give one of them another name"##,
    ),
    (
        "names_that_cannot_be",
        r##"[subscriptions."a/b"]
provider = "claude"
[profiles."../x"]
chain = ["a/b"]
[plugins."../q"]
sha256 = "12"
"##,
        r##"error: subscriptions."a/b": "a/b" cannot be a subscription's name
 --> /r/config.toml:1:16
  |
1 | [subscriptions."a/b"]
  |                ^^^^^
  = next: a route is written subscription/model, so the name holds no slash; rename it, for example my-claude

error: profiles."../x": "../x" cannot be a profile's name
 --> /r/config.toml:3:11
  |
3 | [profiles."../x"]
  |           ^^^^^^
  = next: it is also a folder's name: use letters, digits, - and _, at most 64

error: plugins."../q": "../q" cannot be a plugin's name
 --> /r/config.toml:5:10
  |
5 | [plugins."../q"]
  |          ^^^^^^
  = next: the library is libplugin_<name>.so: use lower-case letters, digits, - and _

error: plugins."../q".sha256: this is not a SHA-256 checksum (64 hex digits)
 --> /r/config.toml:6:10
  |
6 | sha256 = "12"
  |          ^^^^
  = next: run `baton plugin install FILE`, which writes it"##,
    ),
    (
        "durations",
        r##"[subscriptions.a]
provider = "claude"
[profiles.default]
chain = ["a/opus"]
attempt_deadline = "30"
silence = "5 minutes"
"##,
        r##"error: profiles.default.attempt_deadline: "30" is not a duration
 --> /r/config.toml:5:20
  |
5 | attempt_deadline = "30"
  |                    ^^^^
  = next: write a number with its unit: "45s", "10m", "1h30m", "2d"

error: profiles.default.silence: "5 minutes" is not a duration
 --> /r/config.toml:6:11
  |
6 | silence = "5 minutes"
  |           ^^^^^^^^^^^
  = next: write a number with its unit: "45s", "10m", "1h30m", "2d""##,
    ),
    (
        "paths",
        r##"[subscriptions.a]
provider = "claude"
home = "$NOWHERE/x"
binary = "~bob/claude"
[profiles.default]
chain = ["a/opus"]
[usage]
snapshot = ""
"##,
        r##"error: subscriptions.a.home: the variable $NOWHERE in the path is not set
 --> /r/config.toml:3:8
  |
3 | home = "$NOWHERE/x"
  |        ^^^^^^^^^^^^
  = next: write the path in full, with ~/, or with a variable that is set

error: subscriptions.a.binary: "~bob/claude": only `~/…` is understood, not another person's home
 --> /r/config.toml:4:10
  |
4 | binary = "~bob/claude"
  |          ^^^^^^^^^^^^^
  = next: write the path in full, with ~/, or with a variable that is set

error: usage.snapshot: the path is empty
 --> /r/config.toml:8:1
  |
8 | snapshot = ""
  | ^^^^^^^^
  = next: write the path in full, with ~/, or with a variable that is set"##,
    ),
    (
        "keys_of_another_provider",
        r##"[subscriptions.a]
provider = "claude"
key_env = "K"
price = { input = 1, output = 2 }
[subscriptions.b]
provider = "openai"
key_env = "SET_KEY"
home = "~/x"
max_tokens = 3
[profiles.default]
chain = ["a/opus"]
"##,
        r##"error: subscriptions.a.key_env: provider = "claude" does not read key_env
 --> /r/config.toml:3:11
  |
3 | key_env = "K"
  |           ^^^
  = next: key_env belongs to provider anthropic or openai; take it out

error: subscriptions.a.price: provider = "claude" does not read price
 --> /r/config.toml:4:9
  |
4 | price = { input = 1, output = 2 }
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^
  = next: price belongs to provider anthropic or openai; take it out

error: subscriptions.b.home: provider = "openai" does not read home
 --> /r/config.toml:8:8
  |
8 | home = "~/x"
  |        ^^^^^
  = next: home belongs to provider claude, codex or opencode; take it out

error: subscriptions.b.max_tokens: provider = "openai" does not read max_tokens
 --> /r/config.toml:9:14
  |
9 | max_tokens = 3
  |              ^
  = next: max_tokens belongs to provider anthropic; take it out"##,
    ),
    (
        "keys_of_apis",
        r##"[subscriptions.a]
provider = "anthropic"
[subscriptions.b]
provider = "openai"
[subscriptions.c]
provider = "openai"
key_env = "SET_KEY"
key_file = "k"
[subscriptions.d]
provider = "anthropic"
key_env = "sk-ant-secret"
max_tokens = 0
[profiles.default]
chain = ["a/opus"]
"##,
        r##"error: subscriptions.d.key_env: this is not the name of an environment variable
  = next: write the variable's name, for example "OPENAI_API_KEY", and put the key into the variable

error: subscriptions.a: the key is missing
 --> /r/config.toml:1:16
  |
1 | [subscriptions.a]
  |                ^
  = next: add key_env = "ANTHROPIC_API_KEY" or key_file = "…"

error: subscriptions.b: the key is missing
 --> /r/config.toml:3:16
  |
3 | [subscriptions.b]
  |                ^
  = next: add key_env = "OPENAI_API_KEY", or base_url for a server that needs no key

error: subscriptions.c.key_file: key_env and key_file are both set
 --> /r/config.toml:8:12
  |
8 | key_file = "k"
  |            ^^^
  = next: keep one of them

error: subscriptions.d.max_tokens: 0 is out of range
  --> /r/config.toml:12:14
   |
12 | max_tokens = 0
   |              ^
   = next: write a number of tokens from 1 to 4294967295"##,
    ),
    (
        "addresses",
        r##"[subscriptions.a]
provider = "openai"
base_url = "api.example.com"
[subscriptions.b]
provider = "openai"
base_url = "https://u:pw@h/v1"
[subscriptions.c]
provider = "openai"
base_url = "ftp://h"
[profiles.default]
chain = ["a/opus"]
"##,
        r##"error: subscriptions.a.base_url: this is not the address of an API
 --> /r/config.toml:3:12
  |
3 | base_url = "api.example.com"
  |            ^^^^^^^^^^^^^^^^^
  = next: write it as https://host/path, for example https://api.fireworks.ai/inference/v1

error: subscriptions.b.base_url: the address holds a name or a password
 --> /r/config.toml:6:12
  | (not shown: the line may hold a secret)
  = next: secrets are named, never written: use key_env or key_file

error: subscriptions.c.base_url: this is not the address of an API
 --> /r/config.toml:9:12
  |
9 | base_url = "ftp://h"
  |            ^^^^^^^^^
  = next: write it as https://host/path, for example https://api.fireworks.ai/inference/v1"##,
    ),
    (
        "prices",
        r##"[subscriptions.a]
provider = "openai"
key_env = "SET_KEY"
price = { input = -1, output = 2 }
[subscriptions.b]
provider = "openai"
key_env = "SET_KEY"
price = { input = 1 }
[profiles.default]
chain = ["a/opus"]
"##,
        r##"error: subscriptions.a.price.input: expected a number from 0, found -1
 --> /r/config.toml:4:19
  |
4 | price = { input = -1, output = 2 }
  |                   ^^

error: subscriptions.b.price: output is missing
 --> /r/config.toml:8:9
  |
8 | price = { input = 1 }
  |         ^^^^^^^^^^^^^"##,
    ),
    (
        "parts_not_built_yet",
        r##"store = "postgres://h/db"
[subscriptions.a]
provider = "claude"
[subscriptions.gpt]
provider = "codex"
[profiles.default]
chain = ["a/opus", "gpt/gpt-6.1-sol"]
[profiles.default.routing]
enabled = true
auto_resume = true
cap = { thread = 3 }
paid = { enabled = true, cap_day = 5 }
auto_resum = true
[http]
listen = "127.0.0.1:1"
"##,
        r##"error: store: not yet: store = "postgres://…" for several hosts comes later; the embedded store needs no key
 --> /r/config.toml:1:1
  |
1 | store = "postgres://h/db"
  | ^^^^^
  = next: take it out of the file until then

error: profiles.default.routing.paid.enabled: not yet: paid routes are not switched to by themselves yet; a metered route that stands first in the chain, or is chosen with /model, is used
  --> /r/config.toml:12:10
   |
12 | paid = { enabled = true, cap_day = 5 }
   |          ^^^^^^^
   = next: take it out of the file until then

error: profiles.default.routing: unknown key "auto_resum" (did you mean "auto_resume"?)
  --> /r/config.toml:13:1
   |
13 | auto_resum = true
   | ^^^^^^^^^^
   = next: known here: enabled, auto_resume, chain, chain_order, fresh_max, wait_if_reset_within, paid_wait_if_reset_within, weekly_nearly_gone, guard, reserve, cap, paid, drain_timeout, interrupt_ack, hold_grace, reset_jitter, admission, handoff

error: http: not yet: the HTTP surface comes with the session bridge; `baton chat` talks in the terminal
  --> /r/config.toml:14:2
   |
14 | [http]
   |  ^^^^
   = next: take it out of the file until then"##,
    ),
    (
        "routing_outside_its_ranges",
        r##"[subscriptions.a]
provider = "claude"
[profiles.default]
chain = ["a/opus"]
[profiles.default.routing]
auto_resume = true
fresh_max = "2h"
drain_timeout = "soon"
cap = { thread = 21 }
paid = { cap_day = -1.0 }
"##,
        r##"error: profiles.default.routing.auto_resume: not yet: a limited conversation goes on by itself only under routing
 --> /r/config.toml:6:15
  |
6 | auto_resume = true
  |               ^^^^
  = next: set enabled = true beside it, or take it out of the file until then

error: profiles.default.routing.fresh_max: `fresh_max` is 120, but must lie within 1 to 60
 --> /r/config.toml:7:13
  |
7 | fresh_max = "2h"
  |             ^^^^
  = next: leave it out for the default

error: profiles.default.routing.drain_timeout: "soon" is not a duration
 --> /r/config.toml:8:17
  |
8 | drain_timeout = "soon"
  |                 ^^^^^^
  = next: write a number with its unit, for example "45s", "10m" or "1h30m"; "0m" is none

error: profiles.default.routing.cap.thread: `cap.thread` is 21, but must lie within 0 to 20
 --> /r/config.toml:9:18
  |
9 | cap = { thread = 21 }
  |                  ^^
  = next: leave it out for the default

error: profiles.default.routing.paid.cap_day: expected a number from 0, found -1.0
  --> /r/config.toml:10:20
   |
10 | paid = { cap_day = -1.0 }
   |                    ^^^^"##,
    ),
    (
        "not_toml",
        r##"a = 
b = "x
[c
"##,
        r##"error: this is not TOML: string values must be quoted, expected literal string
 --> /r/config.toml:1:5
  |
1 | a = 
  |     ^

error: this is not TOML: invalid basic string, expected `"`
 --> /r/config.toml:2:7
  |
2 | b = "x
  |       ^

error: this is not TOML: unclosed table, expected `]`
 --> /r/config.toml:3:3
  |
3 | [c
  |   ^"##,
    ),
    (
        "key_twice",
        r##"[subscriptions.a]
provider = "claude"
provider = "claude"
"##,
        r##"error: this is not TOML: duplicate key
 --> /r/config.toml:3:1
  |
3 | provider = "claude"
  | ^^^^^^^^"##,
    ),
];

fn surroundings() -> Environment {
    let mut environment = Environment::of(Path::new("/h"), &[("SET_KEY", "k")]);
    environment.workdir = PathBuf::from("/");
    environment
}

fn read(text: &str) -> Result<Loaded, ConfigError> {
    check_text(&RootPath("/r".into()), &surroundings(), text)
}

#[test]
fn refused_with_these_words() {
    for (name, text, words) in REFUSED {
        let told = read(text).expect_err(name).to_string();
        assert_eq!(told, *words, "\n--- {name} says:\n{told}\n---");
    }
}

/// What `PRODUCT.md` shows, without the parts not built yet.
const EXAMPLE: &str = r#"
[subscriptions.claude-work]
provider = "claude"
home = "~/.claude-work"

[subscriptions.fireworks]
provider = "openai"
base_url = "https://api.fireworks.ai/inference/v1"
key_env = "FIREWORKS_API_KEY"
billing = "metered"
price = { input = 0.5, output = 2.0 }

[profiles.default]
chain = ["claude-work/opus", "fireworks/kimi-k3"]
workdir = "~/src/app"

[profiles.default.plugins]
quota = { enabled = true }
handoff = { enabled = true }

[profiles.default.routing]
enabled = false
paid = { enabled = false }
"#;

#[test]
fn every_setting_of_routing_is_read_under_its_own_name() {
    use gateway_core::switch::settings::ChainOrder;
    let text = r#"
[subscriptions.a]
provider = "claude"
[subscriptions.b]
provider = "codex"
[profiles.default]
chain = ["a/opus", "b/gpt"]
[profiles.default.routing]
enabled = true
auto_resume = true
chain = ["b/gpt", "gone/x"]
chain_order = "absolute"
fresh_max = "5m"
wait_if_reset_within = "0m"
paid_wait_if_reset_within = "30m"
weekly_nearly_gone = 90
guard = { margin = 12, safety = 1.5, K = 5, min_samples = 1, hard = 96 }
reserve = { interactive = 6, background = 20 }
cap = { thread = 2, env = 9 }
paid = { enabled = false, cap_day = 7.5, cap_thread = 0, accounts = ["f"] }
drain_timeout = "1m"
interrupt_ack = "10s"
hold_grace = "5s"
reset_jitter = ["1s", "2s"]
admission = { max_wait = "2h" }
handoff = { cap = 16000 }
"#;
    let loaded = read(text).unwrap();
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    let routing = &loaded.settings.profiles[&ProfileId::new("default")].routing;
    assert_eq!(routing.candidates, [Route::new("b", "gpt")]);
    let set = &routing.settings;
    assert!(set.enabled && set.auto_resume && set.order == ChainOrder::Absolute);
    let spans = [
        set.fresh_max_ms,
        set.wait_within_ms,
        set.paid_wait_within_ms,
        set.drain_ms,
        set.interrupt_ack_ms,
        set.hold_grace_ms,
        set.admission_max_wait_ms,
    ];
    let want = [300_000, 0, 1_800_000, 60_000, 10_000, 5_000, 7_200_000];
    assert_eq!(spans, want);
    let guard = &set.guard;
    assert_eq!((guard.samples, guard.min_samples), (5, 1));
    let levels = [
        guard.margin_pct,
        guard.safety,
        guard.hard_pct,
        set.weekly_nearly_gone_pct,
        set.reserve_interactive_pct,
        set.reserve_background_pct,
    ];
    assert_eq!(levels, [12.0, 1.5, 96.0, 90.0, 6.0, 20.0]);
    assert_eq!((set.cap_thread, set.cap_environment), (2, 9));
    assert_eq!(set.paid.caps.day.micros(), 7_500_000);
    assert_eq!(set.paid.caps.thread.micros(), 0);
    assert!(!set.paid.enabled && set.paid.accounts.as_ref().is_some_and(|of| of.len() == 1));
    assert_eq!(set.reset_jitter_ms, (1_000, 2_000));
    assert_eq!(set.handoff_cap_tokens, 16_000);
}

#[test]
fn the_example_is_accepted_and_says_what_is_missing_here() {
    let loaded = read(EXAMPLE).unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(Problem::line).collect();
    assert_eq!(
        warnings,
        [
            "subscriptions.fireworks.key_env: the environment variable FIREWORKS_API_KEY is not set; set it to the key, for example with `export FIREWORKS_API_KEY=…`",
            "profiles.default.workdir: the folder /h/src/app does not exist",
        ]
    );
}

#[test]
fn the_schema_accepts_the_example_and_refuses_a_typo() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let json = |text: &str| -> serde_json::Value {
        serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
    };
    let errors: Vec<String> = validator
        .iter_errors(&json(EXAMPLE))
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(!validator.is_valid(&json(&EXAMPLE.replace("chain", "chian"))));
}

#[test]
fn defaults_are_the_documented_ones() {
    let text = "[subscriptions.Claude-A]\nprovider = \"claude\"\nslug = \"apx-1\"\n[subscriptions.o]\nprovider = \"openai\"\nkey_env = \"SET_KEY\"\n[profiles.default]\nchain = [\"claude-a/opus\", \"o/m\"]\n[profiles.default.plugins]\nhandoff = { enabled = false }\n";
    let settings = read(text).unwrap().settings;
    let profile = &settings.profiles[&ProfileId::new("default")];
    assert_eq!(profile.home.0, settings.root.0);
    assert_eq!(profile.attempt_deadline.as_secs(), 1_800);
    assert_eq!(profile.silence.as_secs(), 300);
    assert_eq!(profile.console_permissions(), Permissions::ReadOnly);
    assert!(profile.plugins["quota"].enabled);
    assert!(!profile.plugins["handoff"].enabled);
    assert_eq!(
        settings.usage_snapshot,
        Path::new("/r/var/usage-portal/site/usage.json")
    );
    let chain = profile.chain_for(&settings).entries;
    let facts: Vec<_> = chain
        .iter()
        .map(|entry| (entry.slug.as_str(), entry.billing))
        .collect();
    assert_eq!(facts, [("apx-1", Billing::Plan), ("o", Billing::Metered)]);
    let api = &settings.subscriptions[&SubscriptionId::new("O")].provider;
    assert!(
        matches!(api, ProviderSettings::OpenAi { base_url, .. } if base_url == "https://api.openai.com/v1")
    );
}

#[test]
fn a_plugin_gets_its_own_keys_as_json() {
    let text = "[subscriptions.a]\nprovider = \"claude\"\n[profiles.default]\nchain = [\"a/x\"]\n[profiles.default.plugins]\nmine = { required = true, budget_ms = { on_walk = 7 }, limit = 3, deep = { on = true } }\n";
    let settings = read(text).unwrap().settings;
    let plugin = &settings.profiles[&ProfileId::new("default")].plugins["mine"];
    assert!(plugin.enabled && plugin.required);
    assert_eq!(plugin.budget_ms["on_walk"], 7);
    assert_eq!(
        plugin.config,
        serde_json::json!({"limit": 3, "deep": {"on": true}})
    );
}

/// A root on the disk with these files.
fn root_with(files: &[(&str, &str, u32)]) -> (tempfile::TempDir, RootPath) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, mode) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).unwrap();
    }
    let root = RootPath(folder.path().to_owned());
    (folder, root)
}

const SMALL: &str =
    "[subscriptions.a]\nprovider = \"claude\"\n[profiles.default]\nchain = [\"a/opus\"]\n";

#[test]
fn plugins_stand_in_the_order_of_the_file() {
    let text = "[subscriptions.a]\nprovider = \"claude\"\n[profiles.default]\nchain = [\"a/x\"]\n[profiles.default.plugins]\nzebra = {}\nquota = {}\n[profiles.default.plugins.ant]\nlimit = 3\n";
    let settings = read(text).unwrap().settings;
    let plugins = &settings.profiles[&ProfileId::new("default")].plugins;
    let mut order: Vec<_> = plugins
        .iter()
        .map(|(name, usage)| (usage.order, name))
        .collect();
    order.sort();
    let names: Vec<&str> = order.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["handoff", "zebra", "quota", "ant"]);
    assert_eq!(
        plugins["handoff"].order, 0,
        "what the file does not name stands first"
    );
}

#[test]
fn a_profile_file_wins_and_its_errors_name_it() {
    let work = "chain = [\"a/sonnet\"]\nsilence = \"2m\"\n";
    let (_folder, root) = root_with(&[
        (
            "config.toml",
            &format!("{SMALL}[profiles.work]\nchain = [\"a/opus\"]\nworkdir = \"/\"\n"),
            0o600,
        ),
        ("profiles/work/config.toml", work, 0o600),
    ]);
    let loaded = load(&root, &surroundings()).unwrap();
    let profile = &loaded.settings.profiles[&ProfileId::new("work")];
    assert_eq!(profile.chain[0].to_string(), "a/sonnet");
    assert_eq!(profile.workdir, Path::new("/"));
    assert_eq!(profile.home.0, root.profiles().join("work"));
    let origin = |key: &[&str]| {
        let rows = rows(&loaded, &surroundings());
        let row = rows.into_iter().find(|row| row.key == KeyPath::of(key));
        row.unwrap().origin
    };
    assert_eq!(
        origin(&["profiles", "work", "silence"]),
        Origin::File {
            path: root.profiles().join("work/config.toml"),
            line: 2
        }
    );
    assert_eq!(
        origin(&["profiles", "work", "workdir"]),
        Origin::File {
            path: root.config_file(),
            line: 7
        }
    );
    assert_eq!(
        origin(&["profiles", "work", "attempt_deadline"]),
        Origin::Default
    );

    let (_folder, root) = root_with(&[
        ("config.toml", SMALL, 0o600),
        (
            "profiles/work/config.toml",
            "[subscriptions.b]\nprovider = \"claude\"\n",
            0o600,
        ),
        ("profiles/default/config.toml", "silence = \"1m\"\n", 0o600),
    ]);
    let told = load(&root, &surroundings()).unwrap_err().to_string();
    for words in [
        "profiles.work: unknown key \"subscriptions\"",
        "profiles/work/config.toml:1:2",
        "belongs into the root's config.toml",
        "the profile `default` lives in the root itself",
        "profiles.work: the chain is missing",
    ] {
        assert!(told.contains(words), "{words} not in:\n{told}");
    }
}

#[test]
fn a_secret_file_others_can_read_is_refused_and_a_missing_one_is_said() {
    let config = "[subscriptions.a]\nprovider = \"openai\"\nkey_file = \"open.key\"\n[subscriptions.b]\nprovider = \"openai\"\nkey_file = \"gone.key\"\n[profiles.default]\nchain = [\"a/x\"]\n";
    let (_folder, root) = root_with(&[("config.toml", config, 0o600), ("open.key", "k", 0o644)]);
    let told = load(&root, &surroundings()).unwrap_err().to_string();
    assert!(
        told.contains("open.key can be read by others (mode 644); run `chmod 600"),
        "{told}"
    );
    assert!(
        told.contains("warning: subscriptions.b.key_file: cannot read the key file"),
        "{told}"
    );
}

#[test]
fn no_configuration_says_how_to_get_one() {
    let (_folder, root) = root_with(&[]);
    let told = load(&root, &surroundings()).unwrap_err().to_string();
    assert!(
        told.ends_with("Run `baton init` to write one, or set BATON_HOME to where yours is."),
        "{told}"
    );
}

#[test]
fn an_unreadable_configuration_names_the_file_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("config.toml")).unwrap();
    let error = load(&RootPath(folder.path().to_owned()), &surroundings()).unwrap_err();
    assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
}

#[test]
fn a_configuration_others_can_change_is_said() {
    let (_folder, root) = root_with(&[("config.toml", SMALL, 0o622)]);
    let loaded = load(&root, &surroundings()).unwrap();
    assert!(loaded.warnings[0].message.contains("others can change"));
}

#[test]
fn shown_values_hold_no_secret() {
    let text =
        format!("{SMALL}[profiles.default.plugins]\nmine = {{ api_token = \"t-secret\" }}\n")
            .replace(
                "provider = \"claude\"",
                "provider = \"claude\"\nenv = { SOME_KEY = \"s-secret\", PLAIN = \"p\" }",
            );
    let loaded = read(&text).unwrap();
    let shown = format!("{:?}", rows(&loaded, &surroundings()));
    assert!(
        !shown.contains("-secret") && shown.contains("PLAIN"),
        "{shown}"
    );
}
