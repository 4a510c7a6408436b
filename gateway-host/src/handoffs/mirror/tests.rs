//! Rows of the behaviour contract about files; rows about names stand with the payload.

use std::os::unix::fs::MetadataExt as _;

use gateway_core::handoff::PAYLOAD_VERSION;
use gateway_core::handoff::name::file_name;
use tempfile::TempDir;

use super::*;

const DAY: i64 = 86_400;

/// 2026-09-21T09:00:00Z and some seconds.
fn after(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_789_981_200 + seconds).unwrap()
}

fn mirror() -> (TempDir, Mirror) {
    let home = tempfile::tempdir().unwrap();
    let mirror = Mirror::new(&ProfilePath(home.path().join("home")));
    (home, mirror)
}

fn stored(session: &str, id: &str, created_at: Timestamp) -> StoredHandoff {
    let handoff = Handoff {
        version: PAYLOAD_VERSION,
        id: id.into(),
        turn: "turn-1".into(),
        profile: "default".into(),
        session: session.into(),
        conversation: "conversation-1".into(),
        created_at,
        expires_at: validity::expires_at(created_at, None),
        reason: "rate limit".into(),
        route: Some("claude-work/opus".parse().unwrap()),
        request: "use the-known-secret".into(),
        request_id: "inbound-1".into(),
        progress: "half".into(),
        calls: vec![],
        open_todos: vec![],
        next_reset: None,
        earlier_cuts: 0,
    };
    StoredHandoff {
        handoff,
        state: HandoffState::Armed,
        revision: 1,
        claimed_by: None,
    }
}

fn write(mirror: &Mirror, stored: &StoredHandoff) {
    assert_eq!(
        mirror.write(stored, &Redactor::new(["the-known-secret"])),
        None
    );
}

fn read(mirror: &Mirror, session: &str) -> serde_json::Value {
    serde_json::from_slice(&fs::read(mirror.path(&session.into())).unwrap()).unwrap()
}

fn plant(mirror: &Mirror, name: &str, bytes: &[u8], changed: Timestamp) -> PathBuf {
    mirror.prepare().unwrap();
    let path = mirror.folder.join(name);
    let mut file = File::create(&path).unwrap();
    file.write_all(bytes).unwrap();
    file.set_modified(changed.try_into().unwrap()).unwrap();
    path
}

fn names(mirror: &Mirror) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(&mirror.folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// B19 (the file holds the payload), 5B5, 5B14.
#[test]
fn a_file_is_redacted_and_for_the_owner_alone() {
    let (_home, mirror) = mirror();
    write(&mirror, &stored("a", "1", after(0)));
    let page = read(&mirror, "a");
    assert_eq!(
        (&page["state"], &page["request"]),
        (&"armed".into(), &"use [redacted]".into())
    );
    assert_eq!(
        (&page["route"], &page["progress"]),
        (&"claude-work/opus".into(), &"half".into())
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&mirror.path(&"a".into())), 0o600);
    assert_eq!(mode(&mirror.folder), 0o700);
    assert_eq!(
        names(&mirror),
        [file_name(&"a".into())],
        "no temporary file is left"
    );
}

#[test]
fn a_folder_open_to_others_is_closed() {
    let (_home, mirror) = mirror();
    mirror.prepare().unwrap();
    fs::set_permissions(&mirror.folder, Permissions::from_mode(0o755)).unwrap();
    write(&mirror, &stored("a", "1", after(0)));
    assert_eq!(fs::metadata(&mirror.folder).unwrap().mode() & 0o777, 0o700);
}

/// B21, B25: keys do not meet, and none leaves the folder.
#[test]
fn each_key_has_its_own_file_inside_the_folder() {
    let (_home, mirror) = mirror();
    let keys = [
        "discord:123",
        "telegram:999",
        "../../etc/passwd",
        "a b",
        "a_b",
        "",
    ];
    for key in keys {
        write(&mirror, &stored(key, key, after(0)));
    }
    assert_eq!(names(&mirror).len(), keys.len());
    assert!(keys.iter().all(|key| read(&mirror, key)["session"] == *key));
}

/// B20, and that every final state takes the file away.
#[test]
fn states_table() {
    use HandoffState::{Acked, Armed, Chained, Claimed, Discarded, Expired, Stopped};
    let rows = [
        (Armed, true),
        (Claimed, true),
        (Stopped, true),
        (Acked, false),
        (Discarded, false),
        (Chained, false),
        (Expired, false),
    ];
    for (state, kept) in rows {
        let (_home, mirror) = mirror();
        let mut stored = stored("a", "1", after(0));
        write(&mirror, &stored);
        stored.state = state;
        write(&mirror, &stored);
        assert_eq!(mirror.path(&"a".into()).exists(), kept, "{state:?}");
    }
}

/// B52.
#[test]
fn a_newer_handoff_survives_news_of_an_older_one() {
    let (_home, mirror) = mirror();
    write(&mirror, &stored("a", "new", after(10)));
    for state in [HandoffState::Claimed, HandoffState::Acked] {
        let mut old = stored("a", "old", after(0));
        old.state = state;
        write(&mirror, &old);
        assert_eq!(read(&mirror, "a")["id"], "new", "{state:?}");
    }
    write(&mirror, &stored("a", "newest", after(20)));
    assert_eq!(read(&mirror, "a")["id"], "newest");
}

#[test]
fn remove_takes_the_file_and_is_content_without_one() {
    let (_home, mirror) = mirror();
    assert_eq!(mirror.remove(&"a".into()), None);
    write(&mirror, &stored("a", "1", after(0)));
    assert_eq!(mirror.remove(&"a".into()), None);
    assert!(names(&mirror).is_empty());
}

/// B29, B33: a warning that names the file, never an error.
#[test]
fn an_unwritable_place_is_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let blocked = home.path().join("file");
    File::create(&blocked).unwrap();
    let mirror = Mirror::new(&ProfilePath(blocked));
    let said = mirror
        .write(&stored("a", "1", after(0)), &Redactor::default())
        .unwrap();
    assert!(
        said.contains("turn-handoff/a.") && said.contains("safe in the store"),
        "{said}"
    );
    let swept = mirror.sweep(after(0));
    assert_eq!(swept.warnings.len(), 1, "{swept:?}");
}

/// B31, B32.
#[test]
fn a_sweep_takes_expired_files_only() {
    let (_home, mirror) = mirror();
    assert_eq!(mirror.sweep(after(0)), Swept::default(), "B31 no folder");
    write(&mirror, &stored("old", "1", after(-DAY - 60)));
    write(&mirror, &stored("fresh", "2", after(-60)));
    write(&mirror, &stored("new", "3", after(0)));
    let swept = mirror.sweep(after(0));
    assert_eq!(
        swept,
        Swept {
            expired: 1,
            ..Swept::default()
        }
    );
    assert_eq!(
        names(&mirror),
        [file_name(&"fresh".into()), file_name(&"new".into())]
    );
    assert_eq!(mirror.sweep(after(0)), Swept::default());
}

/// B22, B23, B53: set aside, told once, purged after a week.
#[test]
fn damaged_files_are_set_aside_and_purged() {
    let future = serde_json::to_vec(&stored("a", "1", after(365 * DAY)).handoff).unwrap();
    let rows: [&[u8]; 7] = [
        b"{not json",
        b"[]",
        b"\"x\"",
        b"{}",
        b"{\"created_at\":\"now\"}",
        &[0xff, 0xfe],
        &future,
    ];
    for bytes in rows {
        let (_home, mirror) = mirror();
        let path = plant(&mirror, "a.0.json", bytes, after(-30 * DAY));
        let swept = mirror.sweep(after(0));
        assert_eq!(
            swept,
            Swept {
                set_aside: vec![corrupt(&path)],
                ..Swept::default()
            }
        );
        assert_eq!(names(&mirror), ["a.0.json.corrupt"]);
        assert_eq!(fs::read(corrupt(&path)).unwrap(), bytes);
        assert_eq!(mirror.sweep(after(7 * DAY)), Swept::default());
        assert_eq!(
            mirror.sweep(after(7 * DAY + 1)),
            Swept {
                purged: 1,
                ..Swept::default()
            }
        );
        assert!(names(&mirror).is_empty());
    }
}

#[test]
fn a_damaged_file_in_the_way_is_set_aside_before_a_write() {
    let (_home, mirror) = mirror();
    let name = file_name(&"a".into());
    plant(&mirror, &name, b"{not json", after(0));
    write(&mirror, &stored("a", "1", after(0)));
    assert_eq!(names(&mirror), [name.clone(), format!("{name}.corrupt")]);
}

#[test]
fn temporary_files_of_dead_writers_are_reaped() {
    let (_home, mirror) = mirror();
    plant(&mirror, ".a.0.json.Ab12Cd", b"half", after(-601));
    plant(&mirror, ".b.0.json.Ab12Cd", b"half", after(-600));
    plant(&mirror, "notes.txt", b"somebody's own", after(-DAY));
    assert_eq!(
        mirror.sweep(after(0)),
        Swept {
            reaped: 1,
            ..Swept::default()
        }
    );
    assert_eq!(names(&mirror), [".b.0.json.Ab12Cd", "notes.txt"]);
}

/// Holds the name a dead writer leaves to what the library really does.
#[test]
fn an_unfinished_write_leaves_a_name_the_sweep_knows() {
    let (_home, mirror) = mirror();
    mirror.prepare().unwrap();
    let mut file = OpenOptions::new().open(mirror.path(&"a".into())).unwrap();
    file.write_all(b"half").unwrap();
    let left: Vec<String> = names(&mirror);
    assert_eq!(left.len(), 1);
    let far = Timestamp::try_from(
        fs::metadata(mirror.folder.join(&left[0]))
            .unwrap()
            .modified()
            .unwrap(),
    )
    .unwrap();
    let swept = mirror.sweep(far + SignedDuration::from_hours(1));
    assert_eq!(
        swept,
        Swept {
            reaped: 1,
            ..Swept::default()
        }
    );
}
