//! What a window limits, and whether it limits a given model. The gate and the selection of routes ask here, so that both
//! mean the same by "this window is about you" (notes N7 and N8 of the decision contract).

use super::WindowScope;
use crate::plan::ScopeView;

/// Ids that are account-wide when nothing else is said.
const ACCOUNT_WIDE: [&str; 7] = [
    "five_hour",
    "seven_day",
    "primary",
    "secondary",
    "go_rolling",
    "go_weekly",
    "go_monthly",
];
/// Ids that are about money when nothing else is said.
const SPEND: [&str; 2] = ["overage", "monthly_spend"];
/// `seven_day_<name>` limits the model family `<name>`.
const MODEL_PREFIX: &str = "seven_day_";

/// The budget of a plan's own MCP tools (GLM).
pub const MCP_TOOLS: &str = "mcp_tools";
/// Buckets that no turn draws on: features beside the models.
const ASIDE: [&str; 5] = [
    "code_review",
    "completions",
    MCP_TOOLS,
    "oauth_apps",
    "cowork",
];

/// Whether a bucket can hold a turn up: code review, inline completions and the like cannot.
pub fn serves_turns(bucket: &str) -> bool {
    !ASIDE.iter().any(|aside| aside.eq_ignore_ascii_case(bucket))
}

/// What a window limits once its id has been asked for an unstated scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    Account,
    Model(&'a str),
    Bucket(&'a str),
    Spend,
    /// An id nobody knows, without a scope. The gate tries the route, a selection does not trust it.
    Unknown,
}

/// Decides what a window limits: the stated scope, else its id.
pub fn reach<'a>(window: &'a str, scope: ScopeView<'a>) -> Reach<'a> {
    match scope {
        ScopeView::Account => Reach::Account,
        ScopeView::Model(family) => Reach::Model(family),
        ScopeView::Bucket(bucket) => Reach::Bucket(bucket),
        ScopeView::Spend => Reach::Spend,
        ScopeView::Unstated if ACCOUNT_WIDE.contains(&window) => Reach::Account,
        ScopeView::Unstated if SPEND.contains(&window) => Reach::Spend,
        ScopeView::Unstated => window
            .strip_prefix(MODEL_PREFIX)
            .map_or(Reach::Unknown, Reach::Model),
    }
}

/// Whether a model belongs to a family: the family's words stand in the model's name, whole and in sequence.
/// `Opus 4` fits `claude-opus-4-8` and not `claude-opus-45`. A family without words fits nothing.
pub fn fits(family: &str, model: &str) -> bool {
    let wanted = words(family);
    if wanted.clone().next().is_none() {
        return false;
    }
    let mut rest = words(model);
    loop {
        if starts_with(rest.clone(), wanted.clone()) {
            return true;
        }
        if rest.next().is_none() {
            return false;
        }
    }
}

/// Borrows a stated scope; `None` = not stated.
pub fn view(scope: Option<&WindowScope>) -> ScopeView<'_> {
    match scope {
        None => ScopeView::Unstated,
        Some(WindowScope::Account) => ScopeView::Account,
        Some(WindowScope::Model(family)) => ScopeView::Model(family),
        Some(WindowScope::Bucket(bucket)) => ScopeView::Bucket(bucket),
        Some(WindowScope::Spend) => ScopeView::Spend,
    }
}

/// Reads a scope as the contract writes it: `account`, `spend`, `model:<name>`, `bucket:<id>`. Anything else is not stated.
pub fn parse(text: &str) -> Option<WindowScope> {
    let text = text.trim();
    let (kind, name) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim().to_owned();
    match kind.trim().to_ascii_lowercase().as_str() {
        "account" => Some(WindowScope::Account),
        "spend" => Some(WindowScope::Spend),
        "model" => Some(WindowScope::Model(name)),
        "bucket" => Some(WindowScope::Bucket(name)),
        _ => None,
    }
}

/// Writes a scope as [`parse`] reads it.
pub fn text(scope: &WindowScope) -> String {
    match scope {
        WindowScope::Account => "account".to_owned(),
        WindowScope::Spend => "spend".to_owned(),
        WindowScope::Model(family) => format!("model:{family}"),
        WindowScope::Bucket(bucket) => format!("bucket:{bucket}"),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

fn starts_with<'a>(
    mut words: impl Iterator<Item = &'a str>,
    mut wanted: impl Iterator<Item = &'a str>,
) -> bool {
    wanted.all(|want| words.next().is_some_and(|word| same_word(word, want)))
}

fn same_word(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || a.chars()
            .flat_map(char::to_lowercase)
            .eq(b.chars().flat_map(char::to_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n7_the_id_decides_where_no_scope_is_stated() {
        let rows = [
            ("five_hour", Reach::Account),
            ("go_monthly", Reach::Account),
            ("seven_day_opus", Reach::Model("opus")),
            (
                "seven_day_overage_included",
                Reach::Model("overage_included"),
            ),
            ("overage", Reach::Spend),
            ("monthly_spend", Reach::Spend),
            ("lunar_cycle", Reach::Unknown),
        ];
        for (window, want) in rows {
            assert_eq!(reach(window, ScopeView::Unstated), want, "{window}");
        }
        assert_eq!(
            reach("seven_day", ScopeView::Model("Fable")),
            Reach::Model("Fable")
        );
        assert_eq!(reach("lunar_cycle", ScopeView::Account), Reach::Account);
    }

    #[test]
    fn n8_families_match_by_whole_words_in_sequence() {
        let rows = [
            ("Opus 4", "claude-opus-4-8", true),
            ("Opus 4", "claude-opus-45", false),
            ("opus", "Claude Opus 4.8", true),
            ("opus", "opus", true),
            ("opus 8", "claude-opus-4-8", false),
            ("4 opus", "claude-opus-4-8", false),
            ("opus opus 4", "opus-opus-opus-4", true),
            ("pus", "claude-opus", false),
            ("ÉTÉ", "modèle-été-2", true),
            ("", "claude-opus", false),
            ("--", "claude-opus", false),
            ("opus", "", false),
        ];
        for (family, model, want) in rows {
            assert_eq!(fits(family, model), want, "{family} / {model}");
        }
    }

    #[test]
    fn a_scope_survives_writing_and_reading() {
        for scope in [
            WindowScope::Account,
            WindowScope::Spend,
            WindowScope::Model("Opus 4".into()),
            WindowScope::Bucket("codex_bengalfox".into()),
        ] {
            assert_eq!(parse(&text(&scope)), Some(scope));
        }
        assert_eq!(parse("weird"), None);
        assert_eq!(parse(" MODEL: x "), Some(WindowScope::Model("x".into())));
    }
}
