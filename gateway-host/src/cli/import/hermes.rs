//! What a Hermes home says of its chain: `config.yaml` (`model`, `fallback_providers`, the older `fallback_model`,
//! `providers`, `custom_providers`), the names in `.env`, and where its root publishes `usage.json`. Shapes as its own
//! documentation and example file show them, schema version 50. Read leniently: what is not understood becomes a note.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_norway::Value;

/// A configuration is a few kilobytes; the parser itself bounds depth and aliases.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A Hermes home as far as a chain goes.
#[derive(Debug, Default)]
pub(super) struct Hermes {
    pub(super) folder: PathBuf,
    /// The primary first, then the fallbacks in their order.
    pub(super) chain: Vec<Entry>,
    /// Endpoints the file names, by name.
    pub(super) endpoints: Vec<(String, Endpoint)>,
    /// Names of variables in `.env`; the values are not kept.
    pub(super) env_names: BTreeSet<String>,
    /// Where its root's registry is, whether it exists or not.
    pub(super) usage: PathBuf,
    /// Slugs the registry lists.
    pub(super) slugs: BTreeSet<String>,
    pub(super) notes: Vec<Note>,
}

/// One chain entry as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where it stands, for people: `model`, `fallback_providers[0]`.
    pub(super) place: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) endpoint: Endpoint,
}

/// Where something is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) base_url: Option<String>,
    pub(super) key: Key,
    /// `chat_completions`, `anthropic_messages`, `codex_responses`, …
    pub(super) api_mode: Option<String>,
    pub(super) model: Option<String>,
}

/// Where a key comes from; a written one is never kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Key {
    #[default]
    Unstated,
    Env(String),
    /// It stands in the file itself.
    Written,
    /// A command prints it.
    Command,
}

/// Something a person should know, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) what: String,
    pub(super) why: String,
}

impl Note {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
        }
    }
}

/// Why a home cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum HermesError {
    #[error(
        "{} is not a Hermes home: it has no config.yaml. Name the folder that holds it, usually ~/.hermes", .0.display()
    )]
    NoConfig(PathBuf),
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {bytes} bytes are too many for a configuration", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{}:{line}:{column}: this is not YAML: {message}. Mend it there and try again", path.display())]
    NotYaml {
        path: PathBuf,
        line: usize,
        column: usize,
        message: String,
    },
    #[error("{}: the file holds no settings: a mapping is expected at its top", .0.display())]
    NoMapping(PathBuf),
}

/// Reads a home. Nothing is changed or dialled.
pub(super) fn read(folder: &Path) -> Result<Hermes, HermesError> {
    let file = folder.join("config.yaml");
    let text = text_of(&file).map_err(|error| match error {
        HermesError::Unreadable { source, .. }
            if source.kind() == std::io::ErrorKind::NotFound
                || source.kind() == std::io::ErrorKind::NotADirectory =>
        {
            HermesError::NoConfig(folder.to_owned())
        }
        error => error,
    })?;
    let config = parse(&file, &text)?;
    let mut hermes = Hermes {
        folder: folder.to_owned(),
        env_names: env_names(&folder.join(".env")),
        usage: usage_file(folder),
        ..Hermes::default()
    };
    hermes.slugs = slugs(&hermes.usage);
    endpoints(&config, &mut hermes);
    chain(&config, &mut hermes);
    others(&config, &mut hermes);
    Ok(hermes)
}

fn text_of(path: &Path) -> Result<String, HermesError> {
    let unreadable = |source| HermesError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_BYTES {
        return Err(HermesError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn parse(file: &Path, text: &str) -> Result<Value, HermesError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = serde_norway::from_str(text).map_err(|error| {
        let (line, column) = error
            .location()
            .map_or((1, 1), |at| (at.line(), at.column()));
        HermesError::NotYaml {
            path: file.to_owned(),
            line,
            column,
            message: error.to_string(),
        }
    })?;
    if value.is_mapping() {
        Ok(value)
    } else {
        Err(HermesError::NoMapping(file.to_owned()))
    }
}

/// The registry lies below the root, also when a profile's home is named (its folder is called `profiles`).
fn usage_file(folder: &Path) -> PathBuf {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let parent = whole.parent();
    let root = match parent.and_then(Path::file_name) {
        Some(name) if name == "profiles" => parent.and_then(Path::parent).unwrap_or(&whole),
        _ => &whole,
    };
    root.join("var/usage-portal/site/usage.json")
}

fn slugs(usage: &Path) -> BTreeSet<String> {
    let document = text_of(usage)
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .unwrap_or_default();
    let list = |value: &serde_json::Value, key: &str| -> Vec<serde_json::Value> {
        let list = value.get(key).and_then(serde_json::Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let accounts = list(&document, "providers")
        .into_iter()
        .flat_map(|provider| list(&provider, "accounts"));
    accounts
        .filter_map(|account| Some(account.get("provider_slug")?.as_str()?.trim().to_owned()))
        .collect()
}

/// The names that `.env` sets to something.
fn env_names(file: &Path) -> BTreeSet<String> {
    let text = text_of(file).unwrap_or_default(); // there may be none
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let (name, value) = line
                .strip_prefix("export ")
                .unwrap_or(line)
                .split_once('=')?;
            let set = !value.trim().trim_matches(['"', '\'']).is_empty();
            (set && is_variable(name.trim())).then(|| name.trim().to_owned())
        })
        .collect()
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn endpoints(config: &Value, hermes: &mut Hermes) {
    if let Some(providers) = config.get("providers").and_then(Value::as_mapping) {
        for (name, value) in providers {
            if let Some(name) = name.as_str() {
                hermes.endpoints.push((name.to_owned(), endpoint(value)));
            }
        }
    }
    let custom = config.get("custom_providers").and_then(Value::as_sequence);
    for value in custom.into_iter().flatten() {
        if let Some(name) = text(value, &["name"]) {
            hermes.endpoints.push((name, endpoint(value)));
        }
    }
}

fn chain(config: &Value, hermes: &mut Hermes) {
    match config.get("model") {
        Some(Value::String(model)) => {
            let primary = Entry {
                place: "model".to_owned(),
                provider: text(config, &["provider"]).unwrap_or_default(),
                model: model.trim().to_owned(),
                endpoint: endpoint(config),
            };
            hermes.chain.push(primary);
        }
        Some(model) if model.is_mapping() => {
            let mut primary = entry("model".to_owned(), model);
            if let Some(name) = text(model, &["default", "model", "name"]) {
                primary.model = name;
            }
            hermes.chain.push(primary);
        }
        _ => hermes.notes.push(Note::new(
            "model",
            "no primary model is named in config.yaml",
        )),
    }
    for key in ["fallback_providers", "fallback_model"] {
        match config.get(key) {
            Some(Value::Sequence(list)) => {
                for (at, value) in list.iter().enumerate() {
                    hermes.chain.push(entry(format!("{key}[{at}]"), value));
                }
            }
            Some(value) if value.is_mapping() => hermes.chain.push(entry(key.to_owned(), value)),
            None | Some(Value::Null) => {}
            Some(_) => hermes
                .notes
                .push(Note::new(key, "a list of {provider, model} is expected")),
        }
    }
}

fn entry(place: String, value: &Value) -> Entry {
    Entry {
        place,
        provider: text(value, &["provider"]).unwrap_or_default(),
        model: text(value, &["model", "default"]).unwrap_or_default(),
        endpoint: endpoint(value),
    }
}

fn endpoint(value: &Value) -> Endpoint {
    let key = match text(value, &["key_env", "api_key_env"]) {
        Some(name) if is_variable(&name) => Key::Env(name),
        _ => match text(value, &["api_key"]).as_deref().map(reference) {
            Some(Some(name)) => Key::Env(name),
            Some(None) => Key::Written,
            None if text(value, &["key_cmd"]).is_some() => Key::Command,
            None => Key::Unstated,
        },
    };
    Endpoint {
        base_url: text(value, &["base_url", "api", "url"]),
        key,
        api_mode: text(value, &["api_mode", "transport"]),
        model: text(value, &["default_model", "model"]),
    }
}

/// `${NAME}` names a variable; anything else is a secret that stays where it is.
fn reference(text: &str) -> Option<String> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    is_variable(name).then(|| name.to_owned())
}

/// The first of these keys that holds a text.
fn text(value: &Value, keys: &[&str]) -> Option<String> {
    let found = keys.iter().filter_map(|key| value.get(*key)?.as_str());
    found
        .map(str::trim)
        .find(|text| !text.is_empty())
        .map(str::to_owned)
}

/// What the file says besides, and what becomes of it.
fn others(config: &Value, hermes: &mut Hermes) {
    if config.get("credential_pool_strategies").is_some() {
        hermes.notes.push(Note::new(
            "credential_pool_strategies",
            "several keys behind one provider; here each login is a subscription of its own",
        ));
    }
    let profiles = std::fs::read_dir(hermes.folder.join("profiles"));
    let mut names: Vec<String> = profiles
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("config.yaml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    hermes.notes.extend(names.iter().map(|name| {
        let again = format!(
            "a profile with a chain of its own; bring it over with `baton import hermes {} --profile NAME`",
            hermes.folder.join("profiles").join(name).display()
        );
        Note::new(format!("profiles/{name}"), again)
    }));
}
