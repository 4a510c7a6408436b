use std::path::Component;

use proptest::prelude::*;

use super::*;

#[test]
fn names_become_plain() {
    let rows = [
        ("notes.md", "notes.md"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\windows\\system.ini", "system.ini"),
        ("/etc/shadow", "shadow"),
        ("C:\\boot.txt", "boot.txt"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("a\0b\n.txt", "ab.txt"),
        ("CON.txt", "file-CON.txt"),
        ("lpt1", "file-lpt1"),
        ("com¹.txt", "file-com¹.txt"),
        ("photo\u{202e}gpj.exe", "photogpj.exe"),
        ("a\u{2215}b\u{ff0f}c.txt", "a_b_c.txt"),
        ("a\u{ff0e}\u{ff0e}", "a"),
        ("résumé 1.pdf", "résumé_1.pdf"),
        ("日本語.txt", "日本語.txt"),
        ("x:stream.txt", "x_stream.txt"),
        ("trailing. . ", "trailing"),
        ("~root", "root"),
        ("-rf", "-rf"),
    ];
    for (sent, want) in rows {
        assert_eq!(safe_name(sent), want, "{sent:?}");
    }
    let long = safe_name(&format!("{}.json", "é".repeat(300)));
    assert!(long.len() <= NAME_MAX && long.ends_with("é.json"));
}

fn offered<'a>(name: &'a str, size: u64, media_type: Option<&'a str>) -> Offered<'a> {
    Offered {
        name,
        size,
        media_type,
    }
}

#[test]
fn text_and_images_are_taken_and_the_rest_is_not() {
    let rows = [
        (
            "a.txt",
            Some("text/plain; charset=utf-8"),
            Some(FileKind::Text),
        ),
        ("a.rs", None, Some(FileKind::Text)),
        (
            "a.rs",
            Some("application/octet-stream"),
            Some(FileKind::Text),
        ),
        ("a.json", Some("application/json"), Some(FileKind::Text)),
        ("a.svg", Some("image/svg+xml"), Some(FileKind::Text)),
        ("a.png", Some("image/png"), Some(FileKind::Image)),
        ("a.JPG", Some("image/jpeg"), Some(FileKind::Image)),
        ("a.png", Some("text/html"), None),
        ("a.exe", None, None),
        ("a.zip", Some("application/zip"), None),
        ("a", None, None),
        ("a.pdf", Some("application/pdf"), None),
    ];
    for (name, media_type, want) in rows {
        let got = judge(
            &[offered(name, 1, media_type)],
            &HashSet::new(),
            &Policy::default(),
        );
        assert_eq!(
            got[0].as_ref().ok().map(|kept| kept.kind),
            want,
            "{name} {media_type:?}"
        );
    }
}

#[test]
fn sizes_and_numbers_are_bounded() {
    let policy = Policy {
        file_max: 10,
        message_max: 15,
        files_max: 2,
    };
    let files = [
        offered("a.txt", 11, None),
        offered("b.txt", 10, None),
        offered("c.txt", 6, None),
        offered("d.txt", 0, None),
        offered("e.txt", 5, None),
        offered("f.txt", 1, None),
    ];
    let said: Vec<String> = judge(&files, &HashSet::new(), &policy)
        .into_iter()
        .map(|one| one.map_or_else(|refusal| refusal.to_string(), |kept| kept.name))
        .collect();
    assert_eq!(
        said,
        [
            "a.txt is 11 bytes long; at most 10 bytes are taken.",
            "b.txt",
            "c.txt is 6 bytes long; at most 5 bytes are taken.",
            "d.txt is empty.",
            "e.txt",
            "f.txt is one file too many; at most 2 are taken with one message.",
        ]
    );
}

#[test]
fn two_files_of_one_name_are_both_kept() {
    let files = [
        offered("a.txt", 1, None),
        offered("x/A.TXT", 1, None),
        offered("a.txt", 1, None),
    ];
    let taken = HashSet::from(["a.txt".to_owned()]);
    let names: Vec<String> = judge(&files, &taken, &Policy::default())
        .into_iter()
        .map(|one| one.unwrap().name)
        .collect();
    assert_eq!(names, ["a-2.txt", "A-3.TXT", "a-4.txt"]);
}

#[test]
fn folders_are_named_by_us() {
    let root = Path::new("/srv/files");
    assert_eq!(folder(root, "0a-1"), Some(root.join("0a-1")));
    for key in ["", "..", "a/b", "a.b", "é"] {
        assert_eq!(folder(root, key), None, "{key}");
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("../".to_owned()),
        Just("..\\".to_owned()),
        Just("nul".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\u{ff0f}".to_owned()),
        Just(".".to_owned()),
        "[a-z.]{0,80}",
        any::<String>(),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn whatever_the_name_the_file_stays_in_its_folder(name in hostile()) {
        let safe = safe_name(&name);
        let components: Vec<Component<'_>> = Path::new(&safe).components().collect();
        let plain = matches!(components[..], [Component::Normal(_)]);
        prop_assert!(plain, "{safe:?}");
        prop_assert!(!safe.is_empty() && safe.len() <= NAME_MAX + 5);
        prop_assert!(!safe.starts_with('.') && !safe.ends_with('.'));
        let hostile = |c: char| c.is_control() || matches!(c, '/' | '\\' | ':' | '\u{202e}');
        prop_assert!(!safe.chars().any(hostile));
        prop_assert_eq!(safe_name(&safe), safe);
    }
}
