//! What one gateway process learns of a subscription, every other process of the root knows within a second; and logins of
//! one allowance are one. Real processes, real HTTP on loopback; requests are counted at the servers.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use gateway_host::clock::{Clock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use providers::loopback::{Loopback, Step, Wire};
use support::{baton, write};

/// The longest a test waits for one thing.
const PATIENCE: Duration = Duration::from_secs(60);

fn now() -> Timestamp {
    SystemClock.now()
}

/// A root, and the servers its subscriptions point at.
struct Root {
    home: tempfile::TempDir,
    spent: Loopback,
    free: Loopback,
}

impl Root {
    /// `spent` refuses until far away; `free` answers. `twins` are further subscriptions with `spent`'s key.
    async fn new(twins: &[&str]) -> Self {
        let spent = Loopback::start(Wire::OpenAi).await.expect("a port");
        let free = Loopback::start(Wire::OpenAi).await.expect("a port");
        let resets_at = now() + SignedDuration::from_hours(5);
        spent.otherwise(move |_| Step::UnifiedRejected {
            window: "five_hour".to_owned(),
            resets_at,
        });
        let root = Self {
            home: tempfile::tempdir().expect("a temporary home"),
            spent,
            free,
        };
        let subscription = |name: &str, server: &Loopback, key: &str| {
            let url = server.base_url();
            format!(
                "[subscriptions.{name}]\nprovider = \"openai\"\nbase_url = \"{url}/v1\"\nkey_env = \"{key}\"\nbilling = \"plan\"\n\n"
            )
        };
        let mut config = subscription("spent", &root.spent, "SPENT_KEY");
        for twin in twins {
            config.push_str(&subscription(twin, &root.spent, "SPENT_KEY"));
        }
        config.push_str(&subscription("free", &root.free, "FREE_KEY"));
        let chain: Vec<String> = ["spent"]
            .iter()
            .chain(twins)
            .chain(&["free"])
            .map(|name| format!("\"{name}/m\""))
            .collect();
        config.push_str(&format!(
            "[profiles.default]\nchain = [{}]\n\n[profiles.default.plugins]\nquota = {{ enabled = true }}\n",
            chain.join(", ")
        ));
        std::fs::create_dir(root.path("root")).expect("a folder");
        write(&root.path("root/config.toml"), config.as_bytes());
        root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(baton());
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .env("BATON_HOME", self.path("root"))
            .env("SPENT_KEY", "sk-one")
            .env("FREE_KEY", "sk-two")
            .env("TZ", "UTC")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.home.path());
        command
    }
}

/// A running `baton`, its words as they come.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    words: Receiver<Vec<u8>>,
    shown: String,
}

impl Process {
    #[expect(clippy::disallowed_methods, reason = "the test owns the program")]
    fn start(root: &Root, args: &[&str]) -> Self {
        let mut child = root
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("baton starts; is it built?");
        let (input, mut output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (send, words) = channel();
        std::thread::spawn(move || {
            let mut chunk = vec![0; 8192];
            while let Ok(count @ 1..) = output.read(&mut chunk) {
                let _ = send.send(chunk[..count].to_vec()); // the test may be over
            }
        });
        Self {
            child,
            input,
            words,
            shown: String::new(),
        }
    }

    fn chat(root: &Root) -> Self {
        let mut chat = Self::start(root, &["chat"]);
        chat.sees("/help lists the commands");
        chat
    }

    fn say(&mut self, line: &str) {
        self.shown.clear();
        let input = self.input.as_mut().expect("the input is open");
        input
            .write_all(format!("{line}\n").as_bytes())
            .expect("it reads");
    }

    fn sees(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.shown.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.words.recv_timeout(left) else {
                panic!("`{text}` was not shown:\n{}", self.shown);
            };
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn leave(mut self) {
        self.input = None;
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}\n{}", self.shown);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it has ended already unless a test failed
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_is_refused_another_skips_within_a_second() {
    let root = Root::new(&[]).await;
    let (mut a, mut b) = (Process::chat(&root), Process::chat(&root));
    b.say("/usage");
    b.sees("spent: unknown, nothing was read yet");
    a.say("one");
    root.spent.requests_reach(1).await;
    let refused = Instant::now();
    a.sees("switching to fallback provider...");
    b.say("two");
    let asked = refused.elapsed();
    b.sees(
        "Quota known to be spent — skipping 1 exhausted sub (quota registry) and using free/m...",
    );
    root.free.requests_reach(2).await;
    assert!(
        asked < Duration::from_secs(1),
        "B was asked {asked:?} after A's refusal"
    );
    println!(
        "B skipped what A was refused; it was asked {asked:?} after the refusal, answered {:?} after it",
        refused.elapsed()
    );
    assert_eq!(root.spent.count(), 1, "A's request is the only one");
    // And a process that only looks knows it as well.
    b.say("/usage");
    b.sees("spent: spent until");
    a.leave();
    b.leave();
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_with_one_key_are_one_allowance_and_none_of_them_is_tried_again() {
    let root = Root::new(&["twin", "triplet"]).await;
    let mut chat = Process::chat(&root);
    chat.say("one");
    chat.sees("skipping 1 exhausted sub (quota registry) and switching to fallback provider...");
    root.free.requests_reach(1).await;
    assert_eq!(root.spent.count(), 1, "neither twin was tried");
    chat.say("/usage");
    chat.sees("shares one allowance with spent, twin");
    chat.leave();
    let secret = root.path("root/state/install-secret");
    assert_eq!(std::fs::read(&secret).unwrap().len(), 32);
    let published =
        std::fs::read_to_string(root.path("root/var/usage-portal/site/usage.json")).unwrap();
    assert!(
        !published.contains("sk-one") && !published.contains("fingerprint"),
        "{published}"
    );
}

// --- baton usage

fn ran(root: &Root, args: &[&str]) -> (i32, String, String) {
    let output = root.command(args).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().expect("not killed"),
        text(output.stdout),
        text(output.stderr),
    )
}

fn publish(root: &Root, used: u32, resets_in: SignedDuration) {
    let folder = root.path("root/var/usage-portal/site");
    std::fs::create_dir_all(&folder).unwrap();
    let now = now();
    let status = if used >= 100 { "rejected" } else { "allowed" };
    let text = serde_json::json!({"schema": 6, "providers": [{"id": "x", "accounts": [{"provider_slug": "spent", "observed_at": now.to_string(),
        "windows": [{"key": "five_hour", "pct": used, "status": status, "resets_at": (now + resets_in).to_string()}]}]}]});
    write(&folder.join("usage.json"), text.to_string().as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_shows_what_is_known_and_calls_the_rest_unknown() {
    let root = Root::new(&[]).await;
    publish(&root, 84, SignedDuration::from_mins(133));
    let (code, out, err) = ran(&root, &["usage", "--no-probe"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(!root.path("root/state").exists(), "looking makes no store");
    for text in [
        "spent: nearly full",
        "five_hour  ████████░░  84%  resets ",
        "in 2h 13m",
        " by probe",
        "free: unknown, nothing was read yet, so it is tried",
    ] {
        assert!(out.contains(text), "{text} in {out}");
    }
    assert!(!out.contains('\u{1b}'), "no colours into a pipe");

    publish(&root, 100, SignedDuration::from_hours(5));
    // HTTP endpoints have no surface to ask: nothing is dialled, and that is no complaint either.
    let (code, out, _) = ran(&root, &["usage", "--json", "--profile", "default"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0);
    let spent = &document["subscriptions"][0];
    assert_eq!(
        (&spent["name"], &spent["verdict"], &spent["eligible"]),
        (&"spent".into(), &"spent".into(), &false.into())
    );
    assert!(spent["until"].is_string());
    let window = &spent["windows"][0];
    assert_eq!(
        (
            &window["id"],
            &window["used_pct"],
            &window["freshness"],
            &window["kind"]
        ),
        (
            &"five_hour".into(),
            &100.0.into(),
            &"fresh".into(),
            &"session".into()
        )
    );
    assert_eq!(document["subscriptions"][1]["verdict"], "unknown");
    assert_eq!(document["subscriptions"][1]["probe"]["end"], "unsupported");
    assert_eq!(root.spent.count() + root.free.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_names_what_is_wrong_with_the_asking() {
    let root = Root::new(&[]).await;
    let (code, _, err) = ran(&root, &["usage", "--profile", "defualt"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("there is no profile \"defualt\"") && err.contains("default"),
        "{err}"
    );
    std::fs::remove_file(root.path("root/config.toml")).unwrap();
    let (code, out, err) = ran(&root, &["usage"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.starts_with("error: ") && err.contains("baton init"),
        "{err}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_watch_shows_each_change_once_and_ends_in_order() {
    let root = Root::new(&[]).await;
    publish(&root, 10, SignedDuration::from_hours(4));
    let mut watch = Process::start(&root, &["usage", "--watch", "--no-probe"]);
    watch.sees("spent: has room");
    publish(&root, 100, SignedDuration::from_hours(4));
    watch.sees("spent: spent until");
    assert_eq!(
        watch.shown.matches("Usage at").count(),
        2,
        "{}",
        watch.shown
    );
    let pid = rustix::process::Pid::from_child(&watch.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(watch.child.wait().unwrap().code(), Some(0));
}
