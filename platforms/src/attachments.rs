//! Which files people send are taken, and under what name they are kept. Pure: the adapter downloads, the host writes.
//!
//! A name from outside becomes one plain file name: no folders, no control or direction characters, nothing a system
//! reserves, and no letters of other scripts that only look like ASCII ones in a suffix. It is joined to the folder of
//! its conversation by [`Kept::path`] alone, so nothing leaves it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use unicode_segmentation::UnicodeSegmentation;

/// What is taken. Sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The largest single file.
    pub file_max: u64,
    /// The largest sum over one message.
    pub message_max: u64,
    /// The most files of one message.
    pub files_max: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            file_max: 10 << 20,
            message_max: 20 << 20,
            files_max: 10,
        }
    }
}

/// A file as the platform announces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered<'a> {
    pub name: &'a str,
    /// As announced; the download is cut off at the policy's bound whatever this says.
    pub size: u64,
    /// The platform's media type, for example `text/plain; charset=utf-8`; `None` = it gave none.
    pub media_type: Option<&'a str>,
}

/// What kind of file it is to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Text,
    Image,
}

/// A file that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    name: String,
    pub kind: FileKind,
    /// The most bytes the download may bring.
    pub max_bytes: u64,
}

impl Kept {
    /// The file's name in its folder: one plain component.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is kept: directly in `folder`.
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.name)
    }
}

/// Why a file is not taken; the text is for the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{name} is {size} bytes long; at most {max} bytes are taken.")]
    TooLarge { name: String, size: u64, max: u64 },
    #[error("{name} is neither text nor an image (PNG, JPEG, GIF, WebP).")]
    Kind { name: String },
    #[error("{name} is one file too many; at most {max} are taken with one message.")]
    TooMany { name: String, max: usize },
    #[error("{name} is empty.")]
    Empty { name: String },
}

/// Judges the files of one message, in order; names are made unique among themselves and against `taken`, the names that
/// stand in the conversation's folder already.
pub fn judge(
    offered: &[Offered<'_>],
    taken: &HashSet<String>,
    policy: &Policy,
) -> Vec<Result<Kept, Refusal>> {
    // Folded, because some file systems do not tell case apart.
    let mut names: HashSet<String> = taken.iter().map(|name| name.to_lowercase()).collect();
    let mut left = policy.message_max;
    let mut count = 0;
    offered
        .iter()
        .map(|file| {
            let kind = admit(file, count, left, policy)?;
            count += 1;
            left -= file.size;
            let name = unique(&safe_name(file.name), &names);
            names.insert(name.to_lowercase());
            Ok(Kept {
                name,
                kind,
                max_bytes: file.size.min(policy.file_max),
            })
        })
        .collect()
}

fn admit(
    file: &Offered<'_>,
    count: usize,
    left: u64,
    policy: &Policy,
) -> Result<FileKind, Refusal> {
    let name = safe_name(file.name);
    let max = policy.file_max.min(left);
    if count >= policy.files_max {
        let max = policy.files_max;
        return Err(Refusal::TooMany { name, max });
    }
    if file.size == 0 {
        return Err(Refusal::Empty { name });
    }
    if file.size > max {
        let size = file.size;
        return Err(Refusal::TooLarge { name, size, max });
    }
    kind(&name, file.media_type).ok_or(Refusal::Kind { name })
}

/// Image formats the models of every provider read.
const IMAGES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

/// Media types of text that do not begin with `text/`.
const TEXTS: [&str; 8] = [
    "application/json",
    "application/xml",
    "application/toml",
    "application/yaml",
    "application/x-yaml",
    "application/javascript",
    "application/x-sh",
    "application/sql",
];

/// Suffixes of text for platforms that give no useful type.
const TEXT_SUFFIXES: [&str; 34] = [
    "txt", "md", "log", "csv", "tsv", "json", "jsonl", "toml", "yaml", "yml", "xml", "html", "css",
    "js", "ts", "tsx", "jsx", "py", "rs", "go", "c", "h", "cpp", "hpp", "java", "kt", "rb", "sh",
    "sql", "diff", "patch", "ini", "conf", "tex",
];

/// Suffix and announced type must not contradict each other: `evil.exe` sent as `text/plain` is text, and is kept as such
/// only under a name that says so nowhere else; an image needs both or a missing type.
fn kind(name: &str, media_type: Option<&str>) -> Option<FileKind> {
    let suffix = name
        .rsplit_once('.')
        .map(|(_, suffix)| suffix.to_ascii_lowercase());
    let suffix = suffix.as_deref().unwrap_or_default();
    let media = media_type
        .and_then(|text| text.split(';').next())
        .map(str::trim);
    let media = media.filter(|media| !media.is_empty() && *media != "application/octet-stream");
    let image = IMAGES.iter().find(|(known, _)| *known == suffix);
    match (media, image) {
        (Some(media), Some((_, expected))) => media
            .eq_ignore_ascii_case(expected)
            .then_some(FileKind::Image),
        (None, Some(_)) => Some(FileKind::Image),
        (Some(media), None) => is_text(media).then_some(FileKind::Text),
        (None, None) => TEXT_SUFFIXES.contains(&suffix).then_some(FileKind::Text),
    }
}

fn is_text(media: &str) -> bool {
    let media = media.to_ascii_lowercase();
    media.starts_with("text/")
        || TEXTS.contains(&media.as_str())
        || media.ends_with("+json")
        || media.ends_with("+xml")
}

/// The longest name kept, in bytes: file systems take 255, and a number may be added.
const NAME_MAX: usize = 120;

/// Names Windows reserves with any suffix; kept off so that a folder can be copied anywhere.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Makes one plain file name of whatever was sent.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let mapped: String = last.chars().filter_map(safe_char).collect();
    let is_edge = |c: char| c == '.' || c == '_' || c.is_whitespace();
    let plain = mapped.trim_matches(is_edge);
    let stem = plain.split('.').next().unwrap_or_default();
    let prefix = match is_reserved(&stem.to_ascii_lowercase()) {
        true => "file-",
        false => "",
    };
    // Trimmed again behind the cut, which may fall where such a character stands.
    let short = shortened(&format!("{prefix}{plain}"));
    match short.trim_end_matches(is_edge) {
        "" => "file".to_owned(),
        short => short.to_owned(),
    }
}

fn is_reserved(stem: &str) -> bool {
    let numbered = ["com", "lpt"].iter().any(|port| {
        let number = stem.strip_prefix(port);
        number.is_some_and(|number| number.chars().count() == 1)
    });
    RESERVED.contains(&stem) || numbered
}

/// `None` = left out. Letters and digits of any script stay, apart from those that pass for punctuation.
fn safe_char(c: char) -> Option<char> {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => Some(c),
        c if c.is_control() => None,
        // Joiners, direction marks, variation selectors, tags: invisible, and able to turn `gpj.exe` round.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => None,
        // Full-width forms look like ASCII: what looks like a dot, a slash or a letter shall not be one thing to people
        // and another to programs.
        '\u{ff01}'..='\u{ff5e}' => Some('_'),
        c if c.is_alphanumeric() => Some(c),
        _ => Some('_'),
    }
}

/// Keeps the suffix and as much of the stem as fits, cut between grapheme clusters.
fn shortened(name: &str) -> String {
    if name.len() <= NAME_MAX {
        return name.to_owned();
    }
    let suffix = match name.rsplit_once('.') {
        Some((_, suffix)) if suffix.len() <= 10 => format!(".{suffix}"),
        _ => String::new(),
    };
    let mut stem = String::new();
    for cluster in name.graphemes(true) {
        if stem.len() + cluster.len() + suffix.len() > NAME_MAX {
            break;
        }
        stem.push_str(cluster);
    }
    format!("{}{suffix}", stem.trim_end_matches('.'))
}

fn unique(name: &str, names: &HashSet<String>) -> String {
    let is_free = |name: &String| !names.contains(&name.to_lowercase());
    let (stem, suffix) = match name.rsplit_once('.') {
        Some((stem, suffix)) if !stem.is_empty() => (stem, format!(".{suffix}")),
        _ => (name, String::new()),
    };
    let numbered = (2_usize..).map(|number| format!("{stem}-{number}{suffix}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(is_free)
        .expect("one of endlessly many numbers is free")
}

/// The folder of a conversation below `root`, named by a digest or an id of ours: 1 to 64 letters, digits and dashes;
/// `None` = the key is something else and no folder is made of it.
pub fn folder(root: &Path, key: &str) -> Option<PathBuf> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    ((1..=64).contains(&key.len()) && key.chars().all(is_plain)).then(|| root.join(key))
}

#[cfg(test)]
mod tests;
