//! The rows of the behaviour table (3A) that are the snapshot's, by number.

use serde_json::json;

use super::*;

const GOOD: &str = r#"{"schema":6,"providers":[{"id":"claude","accounts":[{"key":"sub-1","label":"me",
    "provider_slug":" claude-apx-1 ","observed_at":1789981000,"windows":[
    {"key":"five_hour","pct":101.0,"status":"rejected","resets_at":"2026-09-24T16:00:00.000Z","scoped":false},
    {"key":"seven_day_overage_included","pct":"12","status":"allowed","scoped":true,"model":"Fable"}]}]}]}"#;

#[test]
fn a45_what_is_no_registry_is_an_empty_one_with_a_reason() {
    let rows: [(&[u8], bool); 9] = [
        (b"", true),
        (b"{not json", true),
        (b"[]", true),
        (b"null", true),
        (b"\xff\xfe", true),
        (b"{\"providers\":null}", false),
        (b"{}", false),
        (b"{\"providers\":[null,7,{\"accounts\":null},{\"accounts\":[null,7,{}]}]}", false),
        (b"{\"providers\":[{\"accounts\":[{\"provider_slug\":\"a\",\"windows\":[null,7,{},{\"key\":\"\"}]}]}]}", false),
    ];
    for (bytes, faulty) in rows {
        let portal = parse(bytes);
        assert!(portal.readings.is_empty());
        assert_eq!(
            portal.fault.is_some(),
            faulty,
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn a45_a_byte_order_mark_is_tolerated() {
    let plain = parse(GOOD.as_bytes());
    assert_eq!(plain.readings.len(), 2);
    assert_eq!(parse(format!("\u{feff}{GOOD}").as_bytes()), plain);
}

#[test]
fn every_member_of_a_window_is_read() {
    let [five_hour, fable] = parse(GOOD.as_bytes()).readings.try_into().unwrap();
    assert_eq!(five_hour.subscription.as_str(), "claude-apx-1");
    assert_eq!(
        (five_hour.window.as_str(), five_hour.used_pct),
        ("five_hour", Some(101.0))
    );
    assert_eq!(five_hour.resets_at.unwrap().as_second(), 1_790_265_600);
    assert_eq!(five_hour.observed_at.unwrap().as_second(), 1_789_981_000);
    assert_eq!(
        (five_hour.scope, five_hour.source),
        (None, ReadingSource::Probe)
    );
    assert_eq!(
        (fable.used_pct, fable.scope),
        (Some(12.0), Some(WindowScope::Model("Fable".into())))
    );
}

#[test]
fn a46_an_account_without_a_slug_is_left_out() {
    for account in [
        json!({"label": "a", "key": "a"}),
        json!({"provider_slug": "  "}),
        json!({"provider_slug": 7}),
    ] {
        let mut account = account;
        account["windows"] = json!([{"key": "five_hour"}]);
        let text = json!({"providers": [{"accounts": [account]}]}).to_string();
        assert!(parse(text.as_bytes()).readings.is_empty(), "{text}");
    }
}

#[test]
fn a_window_may_carry_a_stamp_of_its_own() {
    let text = r#"{"providers":[{"accounts":[{"provider_slug":"a","observed_at":100,
        "windows":[{"key":"five_hour","observed_at":200},{"key":"seven_day"}]}]}]}"#;
    let stamps: Vec<_> = parse(text.as_bytes())
        .readings
        .iter()
        .map(|reading| reading.observed_at.unwrap().as_second())
        .collect();
    assert_eq!(stamps, [200, 100]);
}

#[test]
fn a56_one_bad_value_does_not_void_the_file() {
    let text = GOOD.replace("101.0", "NaN").replace("\"12\"", "Infinity");
    let portal = parse(text.as_bytes());
    assert_eq!((portal.readings.len(), portal.fault), (2, None));
    assert!(
        portal
            .readings
            .iter()
            .all(|reading| reading.used_pct.is_none())
    );
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), cut in 0_usize..400) {
        parse(&bytes);
        parse(GOOD.get(..cut.min(GOOD.len())).unwrap_or_default().as_bytes());
    }
}
