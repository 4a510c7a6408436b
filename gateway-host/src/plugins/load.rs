//! From a file to a plugin's root module. The order matters: our own look at the bytes, a private copy (immune to being
//! overwritten in place), a child process that loads it first (so that a crash is an error line), `dlopen`, our
//! descriptor, `abi_stable`'s header, the layout. A library is never unloaded: its threads and vtables may be in use.
#![allow(
    unsafe_code,
    reason = "dlopen, and reading what the library exports, checked step by step"
)]

use std::cmp::Ordering;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use abi_stable::abi_stability::abi_checking::{AbiInstabilityErrors, check_layout_compatibility};
use abi_stable::library::{AbiHeaderRef, LibHeader, ROOT_MODULE_LOADER_NAME_WITH_NUL, RootModule};
use abi_stable::std_types::RResult;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use plugin_api::abi_stable::StableAbi;
use plugin_api::descriptor::{
    ABI_LIB, API_MAJOR, API_MINOR, DESCRIPTOR_SYMBOL, Described, read_descriptor,
};
use plugin_api::module::{Manifest, PluginModuleRef};
use tokio::io::AsyncWriteExt;

use super::elf;
use super::facts::DisabledBecause;
use crate::clock::{Clock, SystemClock};

/// How long the child may take to load a library.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// How long a private copy stays after its last use.
const KEEP_COPIES: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Why a plugin is not there. Every text names the file or the name and what to do or check next.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(
        "no library for plugin `{name}`; looked at {}. Install one with `baton plugin install FILE`.",
        shown(tried)
    )]
    NotFound { name: String, tried: Vec<PathBuf> },
    #[error("{}: {}", file.display(), self.why())]
    Unreadable {
        file: PathBuf,
        #[source]
        error: std::io::Error,
    },
    #[error("{}: {}", file.display(), self.why())]
    Untrusted { file: PathBuf, why: String },
    #[error("{}: {}", file.display(), self.why())]
    Checksum { file: PathBuf, from: &'static str },
    #[error("{}: {}", file.display(), self.why())]
    NotALibrary { file: PathBuf, why: String },
    /// The child process that loads it first did not come back well.
    #[error("{}: {}", file.display(), self.why())]
    Probe { file: PathBuf, why: String },
    #[error("{}: {}", file.display(), self.why())]
    Linker { file: PathBuf, why: String },
    #[error("{}: {}", file.display(), self.why())]
    NotAPlugin { file: PathBuf, why: String },
    /// Built for another contract.
    #[error("{}: {}", file.display(), self.why())]
    Version { file: PathBuf, why: String },
    #[error("{}: {}", file.display(), self.why())]
    Start { file: PathBuf, why: String },
}

impl LoadError {
    /// The state a plugin is in after this.
    pub fn because(&self) -> DisabledBecause {
        match self {
            Self::Version { .. } => DisabledBecause::Version,
            _ => DisabledBecause::Load,
        }
    }
}

impl LoadError {
    /// The same about another file: people know the library by the name they gave, not by its private copy.
    pub(crate) fn about(mut self, known_as: &Path) -> Self {
        match &mut self {
            Self::NotFound { .. } => {}
            Self::Unreadable { file, .. }
            | Self::Untrusted { file, .. }
            | Self::Checksum { file, .. }
            | Self::NotALibrary { file, .. }
            | Self::Probe { file, .. }
            | Self::Linker { file, .. }
            | Self::NotAPlugin { file, .. }
            | Self::Version { file, .. }
            | Self::Start { file, .. } => *file = known_as.to_path_buf(),
        }
        self
    }

    /// What is wrong, without the file.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::NotFound { .. } => self.to_string(),
            Self::Unreadable { error, .. } => error.to_string(),
            Self::Untrusted { why, .. } => format!("not trusted: {why}"),
            Self::Checksum { from, .. } => {
                format!("its checksum is not the one recorded by {from}")
            }
            Self::NotAPlugin { why, .. } => format!("not a gateway plugin ({why})"),
            Self::Start { why, .. } => format!("the plugin failed to start: {why}"),
            Self::NotALibrary { why, .. }
            | Self::Probe { why, .. }
            | Self::Linker { why, .. }
            | Self::Version { why, .. } => why.clone(),
        }
    }
}

fn shown(paths: &[PathBuf]) -> String {
    let all: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    all.join(", ")
}

/// A loaded library.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) module: PluginModuleRef,
    pub(crate) manifest: Manifest,
    pub(crate) described: Described,
}

/// Writes the bytes to `<run>/<sha256>.so`, readable and executable by us only, and returns the path.
pub(crate) fn private_copy(bytes: &[u8], sha256: &str, run: &Path) -> std::io::Result<PathBuf> {
    let path = run.join(format!("{sha256}.so"));
    // An earlier copy serves only if it still holds these very bytes: a damaged one bears the same name and length.
    let plain = std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_file());
    if plain && std::fs::read(&path).is_ok_and(|copy| copy == bytes) {
        touch(&path);
        return Ok(path);
    }
    std::fs::create_dir_all(run)?;
    std::fs::set_permissions(run, std::fs::Permissions::from_mode(0o700))?;
    // Under another name first: two processes may start at once, and a half-written file must never bear the name.
    let partial = run.join(format!(
        "{sha256}.{}.partial",
        uuid::Uuid::new_v4().simple()
    ));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o500)
        .open(&partial)?;
    file.write_all(bytes)?;
    drop(file);
    std::fs::rename(&partial, &path)?;
    Ok(path)
}

/// The time as file systems keep it.
pub(crate) fn now() -> SystemTime {
    let ms = u64::try_from(SystemClock.now().as_millisecond()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}

/// Marks a copy as used now. One that cannot be marked is only made anew some day.
fn touch(copy: &Path) {
    let marked = std::fs::File::open(copy).and_then(|file| file.set_modified(now()));
    if let Err(error) = marked {
        tracing::debug!(copy = %copy.display(), %error, "a plugin's private copy was not marked as used");
    }
}

/// Removes the copies below `run` that nobody has used for [`KEEP_COPIES`]: no configuration loads them any more. A gateway
/// that has one open keeps what it has; one that starts meanwhile marks its own first.
pub(crate) fn prune(run: &Path, now: SystemTime) -> usize {
    let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
    let is_old = |path: &PathBuf| {
        let is_ours = path
            .extension()
            .is_some_and(|end| end == "so" || end == "partial");
        let about = std::fs::symlink_metadata(path).ok();
        let used = about
            .filter(std::fs::Metadata::is_file)
            .and_then(|about| about.modified().ok());
        is_ours && used.is_some_and(|used| used + KEEP_COPIES < now)
    };
    entries
        .map(|entry| entry.path())
        .filter(is_old)
        .filter(|path| std::fs::remove_file(path).is_ok())
        .count()
}

/// Has a child process (`<exe> plugin probe FILE`) load the library and make instances from `configs`.
pub(crate) async fn probe(exe: &Path, file: &Path, configs: &[String]) -> Result<(), LoadError> {
    let failed = |why: String| LoadError::Probe {
        file: file.to_path_buf(),
        why,
    };
    let ran = run_probe(exe, file, configs).await;
    match ran {
        Err(why) => Err(failed(why)),
        Ok(output) => verdict(file, &output),
    }
}

async fn run_probe(
    exe: &Path,
    file: &Path,
    configs: &[String],
) -> Result<std::process::Output, String> {
    let mut command = tokio::process::Command::new(exe);
    command
        .args(["plugin", "probe"])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = spawn(&mut command)
        .map_err(|error| format!("could not start {} to probe it: {error}", exe.display()))?;
    let input = serde_json::to_vec(configs).unwrap_or_default();
    let stdin = child.stdin.take();
    let talk = async move {
        if let Some(mut stdin) = stdin {
            // A child that died without reading is told by its exit.
            let _ = stdin.write_all(&input).await;
        }
        child.wait_with_output().await
    };
    match tokio::time::timeout(PROBE_LIMIT, talk).await {
        Err(_) => Err(format!("did not load within {} s", PROBE_LIMIT.as_secs())),
        Ok(Err(error)) => Err(format!("the probe could not be read: {error}")),
        Ok(Ok(output)) => Ok(output),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the probe is our own executable for at most five seconds, killed when dropped; it is no turn's child"
)]
fn spawn(command: &mut tokio::process::Command) -> std::io::Result<tokio::process::Child> {
    command.spawn()
}

/// The last line the probe prints is its word; a plugin may have printed before it.
fn verdict(file: &Path, output: &std::process::Output) -> Result<(), LoadError> {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.trim_end().lines().last().unwrap_or_default();
    let file = file.to_path_buf();
    if output.status.success() && last == PROBE_OK {
        return Ok(());
    }
    if let Some(why) = last.strip_prefix(PROBE_VERSION) {
        let why = why.to_owned();
        return Err(LoadError::Version { file, why });
    }
    if let Some(why) = last.strip_prefix(PROBE_ERROR) {
        let why = why.to_owned();
        return Err(LoadError::Probe { file, why });
    }
    Err(LoadError::Probe {
        file,
        why: format!("ended the process that loaded it ({})", output.status),
    })
}

/// What `baton plugin probe` prints last, when all is well, when the version is wrong, when anything else is.
pub(crate) const PROBE_OK: &str = "probe: ok";
pub(crate) const PROBE_VERSION: &str = "probe: version: ";
pub(crate) const PROBE_ERROR: &str = "probe: error: ";

/// Loads a library into this process. The bytes have been checked by [`elf::check`].
pub(crate) fn open(file: &Path) -> Result<Opened, LoadError> {
    // SAFETY: loading runs the library's constructors; a child process has loaded the same bytes before.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
    // Never unloaded, whatever comes: what is read below is handed out as `'static`.
    let library = ManuallyDrop::new(library.map_err(|error| LoadError::Linker {
        file: file.to_path_buf(),
        why: chain(&error),
    })?);
    let described = describe(&library, file)?;
    let header = header(&library, file)?;
    let module: PluginModuleRef = root_module(header, &described, API_MINOR, file)?;
    let manifest = match (module.manifest())() {
        RResult::ROk(manifest) => manifest,
        RResult::RErr(error) => {
            return Err(LoadError::Start {
                file: file.to_path_buf(),
                why: error.message.into(),
            });
        }
    };
    Ok(Opened {
        module,
        manifest,
        described,
    })
}

/// Checks bytes and loads a file a person named; for `plugin check` and the probe.
pub(crate) fn open_named(file: &Path) -> Result<Opened, LoadError> {
    let read = super::find::read_named(file)?;
    elf::check(&read).map_err(|why| LoadError::NotALibrary {
        file: file.to_path_buf(),
        why,
    })?;
    open(file)
}

fn describe(library: &Library, file: &Path) -> Result<Described, LoadError> {
    let not_ours = |why: &str| LoadError::NotAPlugin {
        file: file.to_path_buf(),
        why: why.to_owned(),
    };
    // SAFETY: only the symbol's address is taken here.
    let symbol = unsafe { library.get::<*const u8>(DESCRIPTOR_SYMBOL.as_bytes()) };
    let symbol = symbol.map_err(|_| not_ours("no descriptor"))?;
    // SAFETY: the static is exported under our name, and the library is kept for ever once this succeeds.
    let described = unsafe { read_descriptor(symbol.as_raw_ptr().cast_const().cast()) };
    let described = described.map_err(|_| not_ours("its descriptor is damaged"))?;
    judge_descriptor(&described, file)?;
    Ok(described)
}

/// The version rule: same major, any minor both ways; it must unwind, and stand on the same binary interface.
fn judge_descriptor(described: &Described, file: &Path) -> Result<(), LoadError> {
    let version = |why: String| LoadError::Version {
        file: file.to_path_buf(),
        why,
    };
    if described.api_major != API_MAJOR {
        return Err(version(format!(
            "plugin was built for plugin-api {}.{}.0, this gateway has plugin-api {API_MAJOR}.{API_MINOR}.0",
            described.api_major, described.api_minor
        )));
    }
    if described.abi_lib != ABI_LIB {
        let ours = ABI_LIB.trim_start_matches("abi_stable ");
        return Err(version(format!(
            "{} in plugin, {ours} in gateway",
            described.abi_lib
        )));
    }
    if !described.unwinds {
        return Err(LoadError::NotAPlugin {
            file: file.to_path_buf(),
            why: "built with panic = \"abort\": one panic would end the gateway; build it with panic = \"unwind\"".into(),
        });
    }
    Ok(())
}

fn header(library: &Library, file: &Path) -> Result<&'static LibHeader, LoadError> {
    // SAFETY: under this name abi_stable exports a `LibHeader`, whose first field is the `AbiHeader` this points to.
    let found = unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    let found = found.map_err(|error| LoadError::NotAPlugin {
        file: file.to_path_buf(),
        why: chain(&error),
    })?;
    let header: AbiHeaderRef = *found;
    if !header.is_valid() {
        return Err(LoadError::Version {
            file: file.to_path_buf(),
            why: format!(
                "abi_stable {}.{} in plugin, {} in gateway",
                header.abi_major,
                header.abi_minor,
                ABI_LIB.trim_start_matches("abi_stable ")
            ),
        });
    }
    header.upgrade().map_err(|error| LoadError::NotAPlugin {
        file: file.to_path_buf(),
        why: short(&error.to_string()),
    })
}

/// The module of a plugin, for a gateway whose contract is `M` at minor version `our_minor`.
fn root_module<M: RootModule>(
    header: &'static LibHeader,
    described: &Described,
    our_minor: u32,
    file: &Path,
) -> Result<M, LoadError> {
    let version = |why: String| LoadError::Version {
        file: file.to_path_buf(),
        why,
    };
    let theirs = header
        .layout()
        .ok_or_else(|| version("the plugin was built without its layout".into()))?;
    let ours = <M as StableAbi>::LAYOUT;
    // abi_stable's check is one-way: the interface may have fewer methods. So the older side is the interface.
    let (interface, implementation) = match described.api_minor.cmp(&our_minor) {
        Ordering::Less => (theirs, ours),
        Ordering::Equal | Ordering::Greater => (ours, theirs),
    };
    check_layout_compatibility(interface, implementation)
        .map_err(|errors| version(layout_words(&errors)))?;
    // SAFETY: the layout was checked in the line above.
    let module = unsafe { header.init_root_module_with_unchecked_layout::<M>() };
    module.map_err(|error| LoadError::Start {
        file: file.to_path_buf(),
        why: short(&error.to_string()),
    })
}

/// Two lines instead of abi_stable's thousands: the type, and what differs.
fn layout_words(errors: &AbiInstabilityErrors) -> String {
    let Some(deepest) = errors
        .errors
        .iter()
        .max_by_key(|error| error.stack_trace.len())
    else {
        return "the plugin's types differ from the gateway's".into();
    };
    let place = deepest
        .stack_trace
        .last()
        .map(|frame| short(&format!("{}", frame.expected)))
        .unwrap_or_default();
    let what: Vec<String> = deepest
        .errs
        .iter()
        .map(|error| short(&format!("{error:?}")))
        .collect();
    format!(
        "the plugin's types differ from the gateway's: {place}: {}; rebuild it with this gateway's plugin-api",
        what.join(", ")
    )
}

fn short(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().take(160).collect()
}

/// libloading keeps the linker's words in the source.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        words = format!("{words}: {inner}");
        source = inner.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use plugin_api_next::module::PluginModuleRef as NextModule;

    use super::*;

    /// The bundled gate plugin, built for this version's contract.
    fn old_plugin() -> (Library, PathBuf) {
        let deps = std::env::current_exe().expect("a test knows its file");
        let file = deps
            .parent()
            .expect("it lies in a folder")
            .join("libplugin_quota.so");
        // SAFETY: our own plugin; its constructors do nothing.
        let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) };
        (library.expect("cargo builds it beside the tests"), file)
    }

    #[test]
    fn an_old_plugin_works_in_a_gateway_of_the_next_version() {
        let (library, file) = old_plugin();
        let library = ManuallyDrop::new(library);
        let described = describe(&library, &file).expect("a plugin of this major version");
        assert_eq!(
            described.api_minor + 1,
            plugin_api_next::descriptor::API_MINOR
        );
        let header = header(&library, &file).expect("the same abi_stable");
        let next_minor = plugin_api_next::descriptor::API_MINOR;
        let module: NextModule =
            root_module(header, &described, next_minor, &file).expect("older plugins load");
        assert!(
            module.build_info().is_none(),
            "what it does not have is absent"
        );
        let (host, _) = plugin_api_next::testing::host();
        let made = (module.create())(host.services(), "{}".into());
        let mut plugin = made.into_result().expect("an instance");
        let facts = plugin_api_next::testing::Facts::with_routes(3).all_spent(3_600_000);
        let advice = plugin
            .prologue(&facts.prologue())
            .into_result()
            .expect("no error")
            .into_option();
        assert!(
            advice.is_some_and(|advice| advice.skips.len() == 3),
            "its own hooks answer"
        );
        assert!(
            plugin.on_idle(0).into_result().is_ok(),
            "a hook it does not know runs its default body"
        );
    }

    #[test]
    fn a_private_copy_that_was_damaged_at_the_same_length_is_written_anew() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let copy = private_copy(b"library", "abc", folder.path()).expect("writable");
        std::fs::remove_file(&copy).expect("ours");
        std::fs::File::create(&copy)
            .and_then(|mut file| file.write_all(b"damaged"))
            .expect("writable");
        assert_eq!(
            private_copy(b"library", "abc", folder.path()).expect("writable"),
            copy
        );
        assert_eq!(std::fs::read(&copy).expect("readable"), b"library");
    }

    #[test]
    fn copies_nobody_uses_are_removed_and_used_ones_stay() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let old = now - KEEP_COPIES - Duration::from_secs(1);
        let names = ["old.so", "old.partial", "young.so", "old.txt"];
        for name in names {
            let file = std::fs::File::create(folder.path().join(name)).expect("writable");
            let used = if name == "young.so" { now } else { old };
            file.set_modified(used).expect("ours");
        }
        assert_eq!(prune(folder.path(), now), 2);
        let left = |name: &&str| folder.path().join(name).exists();
        let left: Vec<_> = names.iter().filter(|name| left(name)).collect();
        assert_eq!(left, [&"young.so", &"old.txt"]);
        assert_eq!(prune(&folder.path().join("nowhere"), now), 0);
        // One that is used again counts as young.
        let copy = private_copy(b"library", "abc", folder.path()).expect("writable");
        let marked = std::fs::File::open(&copy).expect("readable");
        marked.set_modified(SystemTime::UNIX_EPOCH).expect("ours");
        private_copy(b"library", "abc", folder.path()).expect("writable");
        prune(folder.path(), super::now());
        assert!(copy.exists());
    }

    // What makes the test of the old plugin pass is our rule, not the check as it comes.
    #[test]
    fn the_check_as_it_comes_refuses_an_old_plugin() {
        let (library, file) = old_plugin();
        let library = ManuallyDrop::new(library);
        let header = header(&library, &file).expect("the same abi_stable");
        let theirs = header.layout().expect("with its layout");
        let refused = check_layout_compatibility(<NextModule as StableAbi>::LAYOUT, theirs);
        let words = format!(
            "{:?}",
            refused.expect_err("the newer side as interface").errors
        );
        assert!(words.contains("FieldCountMismatch"), "{}", short(&words));
    }
}
