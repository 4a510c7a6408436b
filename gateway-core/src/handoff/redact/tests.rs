//! Every vector here is made up; none was ever valid.

use proptest::prelude::*;

use super::*;

/// Puts made-up vectors together at run time, so that scanners do not take this file for a leak.
fn fake(parts: &[&str]) -> String {
    parts.concat()
}

#[test]
fn shapes_table() {
    let rows: Vec<(&str, String)> = vec![
        (
            "anthropic",
            fake(&["sk-", "ant-api03-", "FAKEfake0000FAKEfake0000"]),
        ),
        ("openai", fake(&["sk-", "proj-", "FAKE0000fake1111FAKE"])),
        (
            "github_classic",
            fake(&["ghp", "_FAKE0000fake1111FAKE2222fake3333FAKE"]),
        ),
        (
            "github_fine",
            fake(&["github", "_pat_FAKE0000fake1111_FAKE2222fake"]),
        ),
        ("slack_bot", fake(&["xox", "b-0000000000-FAKEfakeFAKE"])),
        ("slack_app", fake(&["xap", "p-1-FAKE0000-111-fake"])),
        ("aws", fake(&["AKI", "AFAKEFAKEFAKEFAKE"])),
        (
            "jwt",
            fake(&["ey", "JhbGciOiJub25lIn0.", "eyJmYWtlIjoxfQ.", "ZmFrZWZha2U"]),
        ),
        (
            "google",
            fake(&["AI", "za0000000000FAKEfake0000000000FAKEfake0"]),
        ),
        ("stripe", fake(&["sk", "_live_FAKE0000fake1111"])),
        (
            "discord",
            fake(&[
                "M",
                "FAKE0000fake1111FAKE2222.",
                "FAKE00.",
                "fake0000FAKE1111fake2222FAKE3",
            ]),
        ),
        (
            "private_key",
            fake(&[
                "-----BEGIN RSA ",
                "PRIVATE KEY-----\nRkFLRUZBS0VGQUtF\nRkFL\n-----END RSA PRIVATE KEY-----",
            ]),
        ),
        (
            "private_key_cut_off",
            fake(&["-----BEGIN ", "PRIVATE KEY-----\\nRkFLRUZBS0VGQUtFRkFLRQ"]),
        ),
    ];
    for (name, secret) in rows {
        let text = format!("before {secret} after");
        assert_eq!(
            Redactor::shapes().redact(&text),
            "before [redacted] after".to_owned(),
            "{name}"
        );
    }
}

#[test]
fn places_table() {
    let rows = [
        (
            "header",
            "Authorization: Bearer fakefakefake",
            "Authorization: Bearer [redacted]",
        ),
        (
            "header_in_json",
            r#"{"authorization":"Basic ZmFrZTpmYWtl"}"#,
            r#"{"authorization":"Basic [redacted]"}"#,
        ),
        (
            "bearer_in_text",
            "curl -H 'bearer fake0000fake'",
            "curl -H 'bearer [redacted]'",
        ),
        (
            "userinfo",
            "postgres://me:hunter2fake@db/x",
            "postgres://me:[redacted]@db/x",
        ),
        (
            "password_json",
            r#"{"password":"fake pass word"}"#,
            r#"{"password":"[redacted]"}"#,
        ),
        (
            "password_json_twice_quoted",
            r#"{\"password\":\"fakefake\"}"#,
            r#"{\"password\":\"[redacted]\"}"#,
        ),
        (
            "env_line",
            "DB_PASSWORD=fake0000fake",
            "DB_PASSWORD=[redacted]",
        ),
        ("yaml_line", "api_key: fake0000fake", "api_key: [redacted]"),
        (
            "flag",
            "tool --token fake0000fake -v",
            "tool --token [redacted] -v",
        ),
    ];
    for (name, text, expected) in rows {
        assert_eq!(Redactor::shapes().redact(text), expected, "{name}");
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    let rows = [
        "the password: required, at least eight characters",
        "token = get_token(user)",
        "password=$DB_PASSWORD and token: ${TOKEN} and \"secret\": \"<your secret>\"",
        "input_tokens: 1234567, max_token: 100000",
        "sk-learn-is-a-long-kebab-name",
        "the bearer certificates of the company",
        "https://example.org:8080/path?q=1",
        "see user@example.org and https://example.org/@me",
        "-- a line, an AKIA word, eyJ alone",
        "",
    ];
    for text in rows {
        assert!(
            matches!(Redactor::shapes().redact(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
}

#[test]
fn encoded_forms_table() {
    let redactor = Redactor::new(["p@ss w\"ord/fake"]);
    let rows = [
        ("as_it_is", "x p@ss w\"ord/fake y"),
        ("percent_upper", "x p%40ss%20w%22ord%2Ffake y"),
        ("percent_lower", "x p%40ss%20w%22ord%2ffake y"),
        ("form", "x p%40ss+w%22ord%2Ffake y"),
        ("json", r#"x p@ss w\"ord/fake y"#),
        ("base64", "x cEBzcyB3Im9yZC9mYWtl y"),
    ];
    for (name, text) in rows {
        assert_eq!(redactor.redact_known(text), "x [redacted] y", "{name}");
    }
}

#[test]
fn a_known_secret_inside_a_base64_pair_is_found() {
    for user in ["a", "ab", "abc", "abcd"] {
        let encoded = base64(format!("{user}:correct-horse-battery").as_bytes(), STANDARD);
        let redactor = Redactor::new(["correct-horse-battery"]);
        assert!(redactor.redact_known(&encoded).contains(MARK), "{user}");
    }
}

#[test]
fn short_and_blank_values_are_not_looked_for() {
    let redactor = Redactor::new(["", "   ", "abc", "redacted"]);
    assert_eq!(redactor.redact_known("abc redacted"), "abc redacted");
}

#[test]
fn shapes_stay_in_what_goes_to_another_provider() {
    let redactor = Redactor::new(["known-secret-value"]);
    assert_eq!(
        redactor.redact_known("password=fake0000fake known-secret-value"),
        "password=fake0000fake [redacted]"
    );
}

#[test]
fn what_it_knows_is_never_printed() {
    assert!(!format!("{:?}", Redactor::new(["known-secret-value"])).contains("known-secret"));
}

/// Text out of pieces that look like secrets, assignments and prose, in any order.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "password=",
        "token: ",
        "\"",
        "'",
        " ",
        "\n",
        "Bearer ",
        "://u:",
        "@",
        "sk-",
        "fake0000fake0000fake",
        "[redacted]",
        "eyJ000000.",
        "xoxb-",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "äö",
        "Authorization: ",
        ".",
        "--token ",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_known_secret_survives(
        secrets in prop::collection::vec("[A-Za-z0-9+/=_-]{6,24}", 1..6),
        text in prop::collection::vec(("[a-z \n]{0,8}", 0usize..6), 0..8),
    ) {
        let redactor = Redactor::new(&secrets);
        let text: String = text
            .iter()
            .map(|(words, which)| format!("{words}{}", secrets.get(*which).map_or("", String::as_str)))
            .collect();
        let redacted = redactor.redact(&text);
        prop_assert!(secrets.iter().all(|secret| !redacted.contains(secret.as_str())));
        prop_assert_eq!(redactor.redact(&redacted), redacted.as_ref());
    }

    #[test]
    fn redacting_twice_changes_nothing_more(text in soup()) {
        let once = Redactor::shapes().redact(&text).into_owned();
        prop_assert_eq!(Redactor::shapes().redact(&once), once.as_str());
    }

    #[test]
    fn prose_is_unchanged(text in "[A-Za-zäß .,;\n]{0,200}") {
        let redactor = Redactor::new(["0-known-secret-0"]);
        prop_assert!(matches!(redactor.redact(&text), Cow::Borrowed(same) if same == text));
    }
}
