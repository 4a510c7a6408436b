//! Numeric codes, which only mean something at their vendor, and whose words a text is.
//!
//! From the vendors' error lists: Z.ai/GLM (1000-1321), MiniMax (`base_resp.status_code`).

use super::evidence::Evidence;
use super::signs::{Sign, Signs};

/// A vendor whose words or codes differ from everybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vendor {
    Glm,
    MiniMax,
    /// DashScope: its `insufficient_quota` is a throttle.
    Qwen,
    Google,
    OpenRouter,
    Other,
}

/// Whose answer it is: what the caller says, else what the answer shows.
pub(super) fn vendor(provider: &str, evidence: &Evidence) -> Vendor {
    let named = |names: &[&str]| names.iter().any(|name| provider.contains(name));
    let shows = |words: &[&str]| words.iter().any(|word| evidence.message.contains(word));
    let coded = |range: std::ops::RangeInclusive<u32>| {
        evidence
            .names
            .iter()
            .filter_map(|name| name.parse().ok())
            .any(|code| range.contains(&code))
    };
    match () {
        () if named(&["minimax"]) || evidence.base_resp => Vendor::MiniMax,
        () if named(&["glm", "zai", "z.ai", "zhipu", "bigmodel"]) => Vendor::Glm,
        () if named(&["qwen", "dashscope", "alibaba", "bailian", "aliyun"])
            || shows(&["aliyun.com", "alibabacloud", "dashscope"]) =>
        {
            Vendor::Qwen
        }
        () if named(&["gemini", "google", "vertex", "antigravity"])
            || evidence.google
            || shows(&["capacity on this model"]) =>
        {
            Vendor::Google
        }
        () if named(&["openrouter"]) || shows(&["openrouter.ai", "free-models-per-"]) => {
            Vendor::OpenRouter
        }
        () if coded(2000..=2099) || shows(&["(1008)", "(2056)", "(1002)", "(1039)"]) => {
            Vendor::MiniMax
        }
        () if coded(1000..=1399) || shows(&["limit will reset at", "z.ai", "bigmodel"]) => {
            Vendor::Glm
        }
        () => Vendor::Other,
    }
}

/// What the vendor's numbers mean.
pub(super) fn coded(vendor: Vendor, names: &[String]) -> Signs {
    let numbers = names.iter().filter_map(|name| name.parse::<u32>().ok());
    let signs = numbers.filter_map(|number| match vendor {
        Vendor::MiniMax => minimax(number),
        _ => glm(number),
    });
    signs.fold(Signs::default(), Signs::with)
}

fn glm(code: u32) -> Option<Sign> {
    Some(match code {
        1000..=1004 | 1100 | 1110 | 1111 | 1112 | 1120 => Sign::AuthDead,
        1113 | 1309 => Sign::Money,
        1211 | 1220 | 1222 | 1311 => Sign::ModelMissing,
        1210 | 1212..=1215 => Sign::BadRequest,
        1261 => Sign::Overflow,
        1301 => Sign::ContentFilter,
        1302 => Sign::Concurrency,
        1303 => Sign::Throttle,
        1304 => Sign::Day,
        1305 | 1312 => Sign::Overload,
        1308 | 1310 | 1316..=1321 | 2056 => Sign::UsageLimit,
        1313 => Sign::FairUse,
        1008 => Sign::Money,
        _ => return None,
    })
}

fn minimax(code: u32) -> Option<Sign> {
    Some(match code {
        1001 => Sign::Timeout,
        1002 | 1039 | 2045 => Sign::Throttle,
        1004 | 2049 => Sign::AuthDead,
        1008 => Sign::Money,
        1026 | 1027 => Sign::ContentFilter,
        1041 => Sign::Concurrency,
        1013 | 1033 => Sign::Overload,
        2013 => Sign::BadRequest,
        2056 => Sign::UsageLimit,
        _ => return None,
    })
}
