//! The provider names of Hermes that mean something by themselves, and what they are here. Names and variables as its
//! documentation lists them (website/docs/user-guide/features/fallback-providers.md, seen in 2026). One that is not listed
//! here and has no address of its own in the file is named as not brought over.

use crate::config::Program;

/// What serves a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upstream {
    /// An official program with its own login. `model_prefix` goes before the model's name.
    Cli {
        program: Program,
        model_prefix: &'static str,
    },
    /// The Messages API with a key, or Claude Code's login if there is no key.
    Anthropic { key_env: &'static str },
    /// An OpenAI-compatible address; the first variable that is set there holds the key.
    OpenAi {
        base_url: &'static str,
        key_envs: &'static [&'static str],
    },
    /// Any address; the file names it.
    Custom,
    /// A login that only Hermes holds, or an API spoken by nobody here.
    Nothing { why: &'static str },
}

const OWN_LOGIN: &str =
    "it is a login of Hermes itself, and Baton does not use other programs' logins";

const fn openai(base_url: &'static str, key_envs: &'static [&'static str]) -> Upstream {
    Upstream::OpenAi { base_url, key_envs }
}

const fn cli(program: Program, model_prefix: &'static str) -> Upstream {
    Upstream::Cli {
        program,
        model_prefix,
    }
}

const UPSTREAMS: &[(&[&str], Upstream)] = &[
    (
        &["anthropic"],
        Upstream::Anthropic {
            key_env: "ANTHROPIC_API_KEY",
        },
    ),
    (&["claude-code"], cli(Program::Claude, "")),
    (&["openai-codex", "codex"], cli(Program::Codex, "")),
    (&["opencode-go"], cli(Program::OpenCode, "opencode-go/")),
    (&["opencode-zen"], cli(Program::OpenCode, "opencode/")),
    (
        &["openai"],
        openai("https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    ),
    (
        &["openrouter"],
        openai(
            "https://openrouter.ai/api/v1",
            &["OPENROUTER_API_KEY", "OPENAI_API_KEY"],
        ),
    ),
    (
        &["deepseek"],
        openai("https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
    ),
    (
        &["groq"],
        openai("https://api.groq.com/openai/v1", &["GROQ_API_KEY"]),
    ),
    (
        &["mistral"],
        openai("https://api.mistral.ai/v1", &["MISTRAL_API_KEY"]),
    ),
    (
        &["fireworks"],
        openai(
            "https://api.fireworks.ai/inference/v1",
            &["FIREWORKS_API_KEY"],
        ),
    ),
    (
        &["together"],
        openai("https://api.together.xyz/v1", &["TOGETHER_API_KEY"]),
    ),
    (
        &["xai", "grok"],
        openai("https://api.x.ai/v1", &["XAI_API_KEY"]),
    ),
    (
        &["nvidia"],
        openai("https://integrate.api.nvidia.com/v1", &["NVIDIA_API_KEY"]),
    ),
    (
        &["huggingface"],
        openai("https://router.huggingface.co/v1", &["HF_TOKEN"]),
    ),
    (
        &["gemini"],
        openai(
            "https://generativelanguage.googleapis.com/v1beta/openai",
            &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
        ),
    ),
    (
        &["zai"],
        openai("https://api.z.ai/api/paas/v4", &["GLM_API_KEY"]),
    ),
    (
        &["ai-gateway"],
        openai("https://ai-gateway.vercel.sh/v1", &["AI_GATEWAY_API_KEY"]),
    ),
    (
        &["ollama-cloud"],
        openai("https://ollama.com/v1", &["OLLAMA_API_KEY"]),
    ),
    (&["lmstudio"], openai("http://127.0.0.1:1234/v1", &[])),
    (&["custom", "ollama", "vllm", "llamacpp"], Upstream::Custom),
    (
        &[
            "nous",
            "copilot",
            "copilot-acp",
            "qwen-oauth",
            "xai-oauth",
            "grok-oauth",
            "minimax-oauth",
        ],
        Upstream::Nothing { why: OWN_LOGIN },
    ),
    (
        &["bedrock"],
        Upstream::Nothing {
            why: "AWS Bedrock's API is not spoken here",
        },
    ),
];

/// What a name means; `None` = nothing by itself.
pub(super) fn find(name: &str) -> Option<Upstream> {
    let named = |(names, _): &&(&[&str], Upstream)| {
        names.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    UPSTREAMS.iter().find(named).map(|(_, upstream)| *upstream)
}
