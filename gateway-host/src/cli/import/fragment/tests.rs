use std::path::Path;

use insta::assert_snapshot;

use super::super::hermes;
use super::*;
use crate::config::{Environment, RootPath, check_text};

/// A home with this fixture's files: `env` stands for `.env`, which would be ignored by too many tools.
fn home(name: &str) -> tempfile::TempDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/cli/import/fixtures")
        .join(name);
    let home = tempfile::tempdir().unwrap();
    for (from, to) in [("config.yaml", "config.yaml"), ("env", ".env")] {
        let _ = std::fs::copy(fixture.join(from), home.path().join(to)); // not each has both
    }
    home
}

fn publish(home: &Path, slug: &str) {
    let folder = home.join("var/usage-portal/site");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        r#"{{"schema": 6, "providers": [{{"accounts": [{{"provider_slug": "{slug}"}}]}}]}}"#
    );
    std::io::Write::write_all(
        &mut std::fs::File::create(folder.join("usage.json")).unwrap(),
        text.as_bytes(),
    )
    .unwrap();
}

/// The proposal with the home's own path taken out; it is accepted by the reader of configurations.
fn proposed(home: &Path, before: Option<&str>, profile: Option<&str>) -> Result<String, Refused> {
    let found = hermes::read(home).unwrap();
    let proposal = propose(&found, before, profile)?;
    let root = RootPath(home.join("baton"));
    check_text(&root, &Environment::of(home, &[]), &proposal.whole).unwrap();
    let notes = proposal
        .notes
        .iter()
        .map(|note| format!("- {}: {}\n", note.what, note.why));
    let text = format!("{}\n{}", proposal.added, notes.collect::<String>());
    let whole = home.canonicalize().unwrap();
    Ok(text
        .replace(&whole.display().to_string(), "HOME")
        .replace(&home.display().to_string(), "HOME"))
}

#[test]
fn a_home_with_everything() {
    let home = home("full");
    assert_snapshot!(proposed(home.path(), None, None).unwrap());
}

#[test]
fn named_endpoints_keep_the_registrys_join_key_and_no_secret() {
    let home = home("named");
    publish(home.path(), "claude-apx-1");
    let text = proposed(home.path(), None, None).unwrap();
    assert!(!text.contains("sk-written-secret") && !text.contains("hidden-secret"));
    assert_snapshot!(text);
}

#[test]
fn what_is_there_is_joined_and_never_changed() {
    let home = home("full");
    let before = "# mine\n[subscriptions.work]\nprovider = \"claude\"\n\n[usage]\nsnapshot = \"/u.json\"\n\n[profiles.default]\nchain = [\"work/opus\"]\n";
    let found = hermes::read(home.path()).unwrap();
    let proposal = propose(&found, Some(before), None).unwrap();
    assert!(proposal.whole.starts_with(before.trim_end()));
    assert_eq!(proposal.profile, "hermes");
    assert!(!proposal.added.contains("snapshot"));
    assert!(
        proposal
            .notes
            .iter()
            .any(|note| note.what == "usage.json" && note.why.contains("left as it is"))
    );
    let named = propose(&found, Some(before), Some("side")).unwrap();
    assert!(named.added.contains("[profiles.side]"));
    let refused = propose(&found, Some(before), Some("default")).unwrap_err();
    assert_eq!(refused, Refused::ProfileTaken("default".into()));
}

#[test]
fn a_subscription_of_the_same_name_stops_it() {
    let home = home("full");
    let before =
        "[subscriptions.OpenRouter]\nprovider = \"openai\"\nbase_url = \"http://localhost/v1\"\n";
    let found = hermes::read(home.path()).unwrap();
    let refused = propose(&found, Some(before), None).unwrap_err();
    assert_eq!(refused, Refused::Taken("openrouter".into()));
    let broken = propose(&found, Some("[subscriptions"), None).unwrap_err();
    assert!(matches!(broken, Refused::NotToml(_)), "{broken:?}");
}

#[test]
fn a_chain_without_anything_for_us_says_why() {
    let home = home("hidden");
    let found = hermes::read(home.path()).unwrap();
    let refused = propose(&found, None, None).unwrap_err().to_string();
    for word in [
        "model (auto/x)",
        "while Hermes runs",
        "nous/h",
        "login of Hermes itself",
    ] {
        assert!(refused.contains(word), "{word}: {refused}");
    }
}

#[test]
fn bad_files_are_named_with_line_and_reason() {
    let broken = home("broken");
    let error = hermes::read(broken.path()).unwrap_err().to_string();
    let shown = error.replace(&broken.path().display().to_string(), "HOME");
    assert!(
        shown.starts_with("HOME/config.yaml:4:") && shown.contains("this is not YAML: "),
        "{shown}"
    );
    let list = hermes::read(home("empty").path()).unwrap_err().to_string();
    assert!(list.contains("a mapping is expected"), "{list}");
    let none = tempfile::tempdir().unwrap();
    let missing = hermes::read(none.path()).unwrap_err().to_string();
    assert!(missing.contains("it has no config.yaml"), "{missing}");
}

#[test]
fn aliases_that_grow_without_end_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let last = format!("*a{}", n - 1);
        let nine = vec![last; 9].join(", ");
        text.push_str(&format!("a{n}: &a{n} [{nine}]\n"));
    }
    let mut file = std::fs::File::create(home.path().join("config.yaml")).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    assert!(hermes::read(home.path()).is_err());
}

#[test]
fn a_profiles_home_finds_the_registry_of_its_root() {
    let root = home("full");
    let profile = root.path().join("profiles/work");
    std::fs::create_dir_all(&profile).unwrap();
    std::fs::copy(root.path().join("config.yaml"), profile.join("config.yaml")).unwrap();
    let whole = root.path().canonicalize().unwrap();
    let found = hermes::read(&profile).unwrap();
    assert_eq!(found.usage, whole.join("var/usage-portal/site/usage.json"));
    let above = hermes::read(root.path()).unwrap();
    assert!(above.notes.iter().any(|note| note.what == "profiles/work"));
}
