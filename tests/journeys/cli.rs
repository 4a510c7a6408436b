//! The command line from outside: the real binary, an empty home, exit codes and words.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A home of its own; nothing of the person who runs the tests is seen.
struct Home {
    folder: tempfile::TempDir,
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(self.out.trim())
            .unwrap_or_else(|error| panic!("{error} in {}", self.out))
    }
}

impl Home {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn with_config(text: &str) -> Self {
        let home = Self::new();
        home.put(".baton/config.toml", text, 0o600);
        home
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join(".baton")
    }

    fn put(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(baton());
        command
            .args(args)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", self.folder.path().join("bin"))
            .current_dir(self.folder.path());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[], b"")
    }

    fn run_with(&self, args: &[&str], variables: &[(&str, &str)], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        finish(&mut command, input)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test starts the program under test"
)]
fn finish(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input); // a program that does not read is part of some tests
    });
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran {
        code: status.code().expect("the program was not killed"),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// `target/<profile>/baton`; the test executable lies in `target/<profile>/deps`.
fn baton() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let found = own
        .ancestors()
        .map(|folder| folder.join("baton"))
        .find(|file| file.is_file());
    found.expect("build the binary first: cargo build -p gateway-host")
}

const CONFIG: &str = r#"[subscriptions.work]
provider = "openai"
base_url = "http://127.0.0.1:9/v1"
key_env = "WORK_KEY"

[profiles.default]
chain = ["work/model"]
"#;

// --- usage

#[test]
fn help_is_an_answer_and_nonsense_is_wrong_usage() {
    let home = Home::new();
    let help = home.run(&["--help"]);
    assert_eq!(help.code, 0);
    for command in [
        "demo", "init", "chat", "handoff", "plugin", "doctor", "config", "explain", "usage",
    ] {
        assert!(
            help.out.contains(&format!("\n  {command}")),
            "{command} in {}",
            help.out
        );
    }
    for args in [
        &["nonsense"][..],
        &[],
        &["config"],
        &["handoff", "show"],
        &["explain", "weather"],
    ] {
        let ran = home.run(args);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{args:?}: {}",
            ran.err
        );
    }
    assert!(!home.root().exists(), "nothing was made");
}

// --- what is registered where

#[test]
fn commands_are_listed_for_both_platforms_without_any_configuration() {
    let home = Home::new();
    let ran = home.run(&["commands"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for line in [
        "Discord: ",
        "Slack: ",
        "  /resume-handoff ",
        "another name for /resume-handoff",
        "  /baton command [argument] ",
        "none was demoted",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    let rows = home.run(&["commands", "--json"]).json();
    let platforms = rows["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for platform in platforms {
        let names: Vec<&str> = platform["commands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|command| command["name"].as_str().unwrap())
            .collect();
        for name in [
            "resume",
            "resume-handoff",
            "resume_handoff",
            "handoffs",
            "plugins",
        ] {
            assert!(names.contains(&name), "{name}: {platform}");
        }
        // Slack has a /status of its own.
        let demoted: Vec<&str> = platform["demoted"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        let expected: &[&str] = match platform["platform"].as_str() {
            Some("slack") => &["status"],
            _ => &[],
        };
        assert_eq!(demoted, expected, "{platform}");
    }
    assert!(!home.root().exists(), "nothing was made");
}

#[test]
fn a_manifest_is_printed_and_honours_the_prefix_of_a_profile() {
    let home = Home::new();
    let ran = home.run(&["slack-manifest"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            0,
            "/status is reached as /baton status (the platform has its own)\n"
        )
    );
    let commands = |manifest: &Value| -> Vec<String> {
        let all = manifest["features"]["slash_commands"].as_array().unwrap();
        all.iter()
            .map(|command| command["command"].as_str().unwrap().to_owned())
            .collect()
    };
    let plain = commands(&ran.json());
    assert!(plain.contains(&"/resume".to_owned()) && plain.contains(&"/baton".to_owned()));
    assert!(!home.root().exists(), "nothing was made");
    let unknown = home.run(&["slack-manifest", "--profile", "work"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.err.contains("there is no profile `work`"),
        "{}",
        unknown.err
    );

    let home = Home::with_config(
        "[subscriptions.a]\nprovider = \"claude\"\n[profiles.default]\nchain = [\"a/m\"]\n\
         [profiles.default.slack]\napp_token_env = \"A\"\nbot_token_env = \"B\"\n\
         users = [\"U1\"]\ncommand_prefix = \"b-\"\n",
    );
    for args in [
        &["slack-manifest"][..],
        &["slack-manifest", "--json", "--profile", "default"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let prefixed = commands(&ran.json());
        assert!(prefixed.contains(&"/b-resume".to_owned()), "{prefixed:?}");
        assert!(prefixed.contains(&"/baton".to_owned()), "{prefixed:?}");
    }
    let listed = home.run(&["commands"]);
    assert!(listed.out.contains("Slack (default): "), "{}", listed.out);
    assert!(listed.out.contains("/b-resume-handoff"), "{}", listed.out);
}

// --- config

#[test]
fn a_good_configuration_checks_with_0_and_shows_its_origins() {
    let home = Home::with_config(CONFIG);
    let check = home.run_with(&["config", "check"], &[("WORK_KEY", "k-value")], b"");
    assert_eq!(check.code, 0, "{}{}", check.out, check.err);
    assert!(
        check
            .out
            .contains("is in order: 1 subscription(s), 1 profile(s), 0 warning(s).")
    );

    let show = home.run_with(&["config", "show"], &[("WORK_KEY", "k-value")], b"");
    assert_eq!(show.code, 0);
    let file = home.root().join("config.toml");
    for line in [
        format!("root = \"{}\"  # default", home.root().display()),
        format!(
            "profiles.default.chain = [\"work/model\"]  # {}:7",
            file.display()
        ),
        "subscriptions.work.billing = \"metered\"  # default".to_owned(),
        format!(
            "subscriptions.work.key_env = \"WORK_KEY (set)\"  # {}:4",
            file.display()
        ),
    ] {
        assert!(show.out.contains(&line), "{line} in {}", show.out);
    }
    assert!(!show.out.contains("k-value"));

    let values = home.run(&["config", "show", "--json"]).json()["values"].clone();
    let keys: Vec<&str> = values
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["key"].as_str().unwrap())
        .collect();
    assert!(keys.contains(&"profiles.default.silence"), "{keys:?}");
}

#[test]
fn a_key_that_is_not_set_is_a_warning_that_names_it() {
    let home = Home::with_config(CONFIG);
    let report = home.run(&["config", "check", "--json"]);
    assert_eq!(report.code, 0);
    let report = report.json();
    assert_eq!(report["ok"], true);
    let problem = &report["problems"][0];
    assert_eq!(problem["severity"], "warning");
    assert_eq!(problem["key"], "subscriptions.work.key_env");
    assert_eq!(
        (&problem["line"], &problem["column"]),
        (&4.into(), &11.into())
    );
    assert!(
        problem["message"]
            .as_str()
            .unwrap()
            .contains("WORK_KEY is not set")
    );
}

#[test]
fn a_bad_configuration_is_1_for_the_check_and_2_for_everything_else() {
    let home = Home::with_config(
        &CONFIG
            .replace("chain", "chian")
            .replace("key_env", "key_evn"),
    );
    let check = home.run(&["config", "check"]);
    assert_eq!((check.code, check.err.as_str()), (1, ""));
    for words in [
        "unknown key \"chian\" (did you mean \"chain\"?)",
        "config.toml:7:1",
        "(did you mean \"key_env\"?)",
    ] {
        assert!(check.out.contains(words), "{words} in {}", check.out);
    }
    for args in [&["config", "show"][..], &["chat"], &["plugin", "list"]] {
        let ran = home.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(ran.err.contains("did you mean \"chain\"?"), "{}", ran.err);
    }
    assert_eq!(home.run(&["doctor"]).code, 1);
}

#[test]
fn a_check_that_could_not_run_is_2_and_says_what_to_do() {
    let home = Home::new();
    for args in [&["config", "check"][..], &["chat"]] {
        let ran = home.run(args);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("Run `baton init`"), "{}", ran.err);
    }
    std::fs::create_dir_all(home.root().join("config.toml")).unwrap();
    let ran = home.run(&["config", "check"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("cannot read the configuration"),
        "{}",
        ran.err
    );
}

#[test]
fn the_schema_is_json_and_knows_the_chain() {
    let schema = Home::new().run(&["config", "schema"]);
    assert_eq!(schema.code, 0);
    assert!(schema.json()["properties"]["profiles"].is_object());
    assert!(schema.out.contains("\"chain\""));
}

#[test]
fn baton_home_moves_the_root() {
    let home = Home::with_config(CONFIG);
    let ran = home.run_with(&["config", "show"], &[("BATON_HOME", ".baton")], b"");
    assert_eq!(ran.code, 0);
    assert!(
        ran.out.starts_with(&format!(
            "root = \"{}\"  # $BATON_HOME\n",
            home.root().display()
        )),
        "{}",
        ran.out
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = Home::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = home.command(&["config", "schema"]);
    let status = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped());
    let output = status.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

// --- init

#[test]
fn init_writes_once_for_us_alone_and_never_over_anything() {
    let home = Home::new();
    let keys = [("ANTHROPIC_API_KEY", "k-value")];
    let refused = home.run_with(&["init"], &keys, b"y\n");
    assert_eq!(refused.code, 2, "nobody can be asked");
    assert!(refused.err.contains("baton init --yes"), "{}", refused.err);
    assert!(!home.root().exists());

    home.put("bin/claude", "#!/bin/sh\n", 0o755);
    home.put("bin/codex", "#!/bin/sh\n", 0o755);
    home.put("bin/opencode", "#!/bin/sh\n", 0o755);
    home.put(".codex/auth.json", "{}", 0o600);
    let ran = home.run_with(&["init", "--yes"], &keys, b"");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for line in ["Found codex at ", "run `opencode auth login`"] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    let file = home.root().join("config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(r#"chain = ["claude/opus", "codex/gpt-6.1-sol", "anthropic/"#),
        "{text}"
    );
    assert!(!text.contains("k-value") && !text.contains("opencode"));
    assert_eq!((mode(&home.root()), mode(&file)), (0o700, 0o600));
    assert_eq!(home.run_with(&["config", "check"], &keys, b"").code, 0);

    let again = home.run_with(&["init", "--yes"], &keys, b"");
    assert_eq!(again.code, 1);
    assert!(
        again.err.contains("exists and is left as it is"),
        "{}",
        again.err
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn init_finds_nothing_and_says_what_to_install() {
    let ran = Home::new().run(&["init", "--yes"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err.contains("no `claude` in PATH") && ran.err.contains("baton demo"),
        "{}",
        ran.err
    );
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// --- the other commands

#[test]
fn handoffs_of_an_empty_root_are_none_and_looking_makes_nothing() {
    let home = Home::new();
    let list = home.run(&["handoff", "list"]);
    assert_eq!((list.code, list.out.as_str()), (0, "No saved handoffs.\n"));
    assert_eq!(home.run(&["handoff", "list", "--json"]).out, "");
    for args in [["handoff", "show", "x"], ["handoff", "discard", "x"]] {
        let ran = home.run(&args);
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.contains("there is no saved handoff \"x\""),
            "{}",
            ran.err
        );
    }
    assert!(!home.root().exists());
}

#[test]
fn a_corrupt_store_is_named() {
    let home = Home::with_config(CONFIG);
    home.put(
        ".baton/state/baton.db",
        &"not a database ".repeat(500),
        0o600,
    );
    let ran = home.run(&["handoff", "list"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("baton.db"), "{}", ran.err);
    let doctor = home.run(&["doctor", "--json"]);
    assert_eq!(doctor.code, 1);
    assert_eq!(status_of(&doctor.json(), "store"), "fail");
}

#[test]
fn the_doctor_names_a_missing_claude_with_a_hint() {
    let config = "[subscriptions.mine]\nprovider = \"claude\"\n[profiles.default]\nchain = [\"mine/opus\"]\n";
    let home = Home::with_config(config);
    let doctor = home.run(&["doctor", "--json"]);
    assert_eq!(doctor.code, 1, "{}", doctor.err);
    let report = doctor.json();
    assert_eq!(report["ok"], false);
    assert_eq!(status_of(&report, "config"), "ok");
    assert_eq!(status_of(&report, "store"), "ok");
    assert_eq!(status_of(&report, "usage registry"), "ok");
    assert_eq!(status_of(&report, "subscription mine"), "fail");
    let plain = home.run(&["doctor"]);
    assert!(
        plain.out.contains("fail  subscription mine: "),
        "{}",
        plain.out
    );
    assert!(plain.out.contains("      next: "), "{}", plain.out);
    assert!(
        !plain.out.contains('\u{1b}'),
        "no colours where nobody sees them"
    );
}

fn status_of(report: &Value, name: &str) -> String {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("{name} in {report}"))["status"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn chat_with_an_unknown_profile_suggests_the_nearest() {
    let home = Home::with_config(CONFIG);
    let ran = home.run(&["chat", "--profile", "defualt"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err
            .contains("there is no profile \"defualt\" (did you mean \"default\"?)"),
        "{}",
        ran.err
    );
}

// --- explain

/// Garbage of every kind, and a line of this many bytes.
fn garbage(long: usize) -> Vec<u8> {
    let mut input =
        b"{\"id\": \"a\"}\nnot json\n\n{\"id\": 7, \"x\": \"\xff\"}\n[1]\n{\"id\": \"deep\", \"x\": "
            .to_vec();
    input.extend(b"[".repeat(100_000));
    input.extend(b"\n{\"id\": \"long\", \"x\": \"");
    input.extend(b"x".repeat(long));
    input.extend(b"\"}\n{\"id\": \"last\"}");
    input
}

#[test]
fn explain_answers_every_line_whatever_comes_in() {
    let hundred_megabytes = 100 * 1024 * 1024;
    for (topic, long) in [
        ("decision", hundred_megabytes),
        ("failure", 1_000),
        ("usage", 1_000),
    ] {
        let ran = Home::new().run_with(&["explain", topic], &[], &garbage(long));
        assert_eq!(ran.code, 1, "{topic}: {}", ran.err);
        let lines = ran.out.lines();
        let answers: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(answers.len(), 8, "{topic}");
        assert!(
            answers.iter().all(|answer| answer["error"].is_string()),
            "{topic}"
        );
        assert_eq!(answers[0]["id"], "a");
        assert_eq!(answers[1]["id"], Value::Null);
        assert_eq!(answers[3]["id"], 7);
        assert_eq!(answers[6]["id"], "long");
        assert_eq!(answers[7]["id"], "last");
    }
}

#[test]
fn explain_ends_with_1_only_if_a_line_was_in_error() {
    let good = r#"{"id": "g", "now": "2026-09-21T09:00:00Z", "trigger": "gate", "chain": [{"subscription": "a", "model": "m"}], "readings": [], "gate": {"reason": "rate_limit"}}"#;
    let ran = Home::new().run_with(&["explain", "decision"], &[], good.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains(r#""decision""#));
    for topic in ["decision", "failure", "usage"] {
        let ran = Home::new().run_with(&["explain", topic], &[], br#"{"id": "a"}"#);
        assert_eq!(ran.code, 1, "{topic}: {}", ran.out);
    }
    let both = format!("{good}\n{{\"id\": \"b\", \"trigger\": \"never\"}}");
    let ran = Home::new().run_with(&["explain", "decision"], &[], both.as_bytes());
    assert_eq!((ran.code, ran.out.lines().count()), (1, 2));
    assert!(ran.out.contains("unknown trigger `never`"), "{}", ran.out);
}

#[test]
fn explain_of_nothing_is_done() {
    let ran = Home::new().run(&["explain", "decision"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
}

// --- import

const HERMES: &str = "model:\n  default: opus\n  provider: anthropic\nfallback_providers:\n  - {provider: openrouter, model: kimi/k3}\n  - {provider: nous, model: h}\n";

#[test]
fn import_shows_first_writes_when_asked_and_never_over_anything() {
    let home = Home::new();
    home.put(".hermes/config.yaml", HERMES, 0o600);
    home.put(".hermes/.env", "OPENROUTER_API_KEY=sk-or-value\n", 0o600);
    let import = |more: &[&str]| {
        let args = [&["import", "hermes", ".hermes"], more].concat();
        home.run(&args)
    };
    let shown = import(&[]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    for line in [
        "[subscriptions.openrouter]",
        "key_env = \"OPENROUTER_API_KEY\"",
        "- fallback_providers[1] (nous/h): it is a login of Hermes itself",
        "Nothing was written",
    ] {
        assert!(shown.out.contains(line), "{line}: {}", shown.out);
    }
    assert!(!home.root().exists());

    let written = import(&["--yes"]);
    assert_eq!(written.code, 0, "{}", written.err);
    let file = home.root().join("config.toml");
    assert_eq!((mode(&home.root()), mode(&file)), (0o700, 0o600));
    let text = std::fs::read_to_string(&file).unwrap();
    let usage = home
        .folder
        .path()
        .canonicalize()
        .unwrap()
        .join(".hermes/var/usage-portal/site/usage.json");
    assert!(
        text.contains(&format!("snapshot = \"{}\"", usage.display())),
        "{text}"
    );
    assert!(!text.contains("sk-or-value"));
    assert_eq!(home.run(&["config", "check"]).code, 0);

    let again = import(&["--yes"]);
    assert_eq!(again.code, 1);
    assert!(
        again
            .err
            .contains("anthropic, openrouter stand in config.toml already"),
        "{}",
        again.err
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

    let other = Home::new();
    other.put(".hermes/config.yaml", HERMES, 0o600);
    let json = other.run(&["--json", "import", "hermes", ".hermes"]).json();
    assert_eq!(json["written"], Value::Null);
    assert_eq!(
        json["not_brought_over"][0]["what"],
        "fallback_providers[1] (nous/h)"
    );
    assert!(!other.root().exists());
}

#[test]
fn import_names_what_it_cannot_read() {
    let home = Home::new();
    let none = home.run(&["import", "hermes", "nowhere"]);
    assert_eq!(none.code, 1);
    assert!(none.err.contains("it has no config.yaml"), "{}", none.err);
    let file = home.put(".hermes/config.yaml", "model: [a\nb: c\n", 0o600);
    let broken = home.run(&["import", "hermes", ".hermes", "--yes"]);
    let place = format!("error: {}:2:", file.display());
    assert_eq!(broken.code, 1);
    assert!(broken.err.starts_with(&place), "{}", broken.err);
    assert!(!home.root().exists());
}

// --- logins that were refused

#[test]
fn doctor_lets_a_refused_login_be_tried_again() {
    let home = Home::with_config(CONFIG);
    let root = gateway_host::config::RootPath(home.root());
    let lockouts = gateway_host::cooling::lockout::Lockouts::of(&root);
    let work = gateway_core::ids::SubscriptionId::new("work");
    assert!(lockouts.record(&work, "as it was", jiff::Timestamp::UNIX_EPOCH));
    let without_key = home.run(&["doctor"]);
    assert!(
        !without_key.out.contains("tried again"),
        "{}",
        without_key.out
    );
    assert!(lockouts.of_subscription(&work).is_some());
    let ready = home.run_with(&["doctor"], &[("WORK_KEY", "k-value")], b"");
    assert!(
        ready.out.contains(
            "its login was refused on 1970-01-01 00:00 UTC, and it is tried again from now on"
        ),
        "{}",
        ready.out
    );
    assert!(lockouts.of_subscription(&work).is_none());
}
