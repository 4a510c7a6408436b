//! From files to [`Settings`]: reads the root's file and the profiles', joins them and runs the checks in order.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::check::check;
use super::document::{Document, KeyPath};
use super::problem::{ConfigError, Problem, Problems};
use super::resolve::resolve;
use super::written::{self, Written};
use super::{DEFAULT_PROFILE, Environment, RootPath, Settings, show};

/// A configuration that can be used.
#[derive(Debug)]
pub struct Loaded {
    pub settings: Settings,
    /// What will not work, though the configuration stands.
    pub warnings: Vec<Problem>,
    /// Where each key is written, for `config show`.
    pub places: show::Places,
}

/// Reads and checks the configuration below `root`. Everything wrong is reported in one error.
pub fn load(root: &RootPath, environment: &Environment) -> Result<Loaded, ConfigError> {
    let mut problems = Problems::default();
    let mut files = vec![(root.config_file(), KeyPath::default())];
    files.extend(profile_files(root, &mut problems)?);
    let mut texts = Vec::new();
    for (path, prefix) in files {
        let text = read(&path, &mut problems)?;
        texts.push((path, prefix, text));
    }
    read_texts(root, environment, &texts, problems)
}

/// Checks the text of a root's file that is not on the disk yet.
pub fn check_text(
    root: &RootPath,
    environment: &Environment,
    text: &str,
) -> Result<Loaded, ConfigError> {
    let file = (root.config_file(), KeyPath::default(), text.to_owned());
    read_texts(root, environment, &[file], Problems::default())
}

fn read_texts(
    root: &RootPath,
    environment: &Environment,
    texts: &[(PathBuf, KeyPath, String)],
    mut problems: Problems,
) -> Result<Loaded, ConfigError> {
    let mut document = Document::default();
    let mut all_parsed = true;
    for (path, prefix, text) in texts {
        match Document::parse(path, text, prefix) {
            Ok(file) => document.lay(file),
            Err(errors) => {
                all_parsed = false;
                problems.extend(errors.into_iter().map(Problem::from));
            }
        }
    }
    let settings = all_parsed
        .then(|| settings_of(&mut document, root, environment, &mut problems))
        .flatten();
    let (errors, warnings) = problems.split();
    match settings {
        Some(settings) if errors.is_empty() => Ok(Loaded {
            settings,
            warnings,
            places: document.places,
        }),
        _ => Err(ConfigError::Refused(
            errors.into_iter().chain(warnings).collect(),
        )),
    }
}

fn settings_of(
    document: &mut Document,
    root: &RootPath,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<Settings> {
    let subscriptions = names_in(document, "subscriptions");
    check(document, &written::schema(), problems);
    match Written::deserialize(Value::Object(document.value.clone())) {
        Ok(written) => resolve(
            &written,
            &subscriptions,
            &document.places,
            root,
            environment,
            problems,
        ),
        Err(error) => {
            problems.push(Problem::error(&KeyPath::default(), error.to_string()));
            None
        }
    }
}

/// All names of a section as written, also those whose content is refused: a chain may name them.
fn names_in(document: &Document, section: &str) -> Vec<String> {
    let table = document.value.get(section).and_then(Value::as_object);
    table
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

/// The profiles' own files, each with the place its keys have in the whole.
fn profile_files(
    root: &RootPath,
    problems: &mut Problems,
) -> Result<Vec<(PathBuf, KeyPath)>, ConfigError> {
    let folder = root.profiles();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(ConfigError::Unreadable {
                path: folder,
                source,
            });
        }
    };
    let mut files = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path().join("config.toml");
        if !path.exists() {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let prefix = KeyPath::of(&["profiles", &name]);
        if name == DEFAULT_PROFILE {
            let message = format!(
                "the profile `default` lives in the root itself; {} is not read",
                path.display()
            );
            let hint = format!(
                "move its keys to [profiles.default] in {}",
                root.config_file().display()
            );
            problems.push(Problem::error(&prefix, message).hint(hint));
        } else {
            files.push((path, prefix));
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path, problems: &mut Problems) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ConfigError::Missing(path.to_owned()),
        _ => ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        },
    })?;
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.mode());
    if mode & 0o022 != 0 {
        let message = format!(
            "others can change {} (mode {:o})",
            path.display(),
            mode & 0o777
        );
        let hint = format!("run `chmod 600 {}`", path.display());
        problems.push(Problem::warning(&KeyPath::default(), message).hint(hint));
    }
    Ok(text)
}
