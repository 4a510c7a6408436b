//! Where a plugin's library lies, and whether the file may be trusted. The first place that has the file wins: if that
//! file is bad it is reported, and the search does not go on. Fails closed: an untrusted file is not opened.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::load::LoadError;
use crate::config::PluginFile;

/// The largest library that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const WORLD_WRITABLE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The folders libraries are looked for in.
#[derive(Debug, Clone)]
pub struct Places {
    /// The folder of the gateway's executable.
    pub exe_dir: PathBuf,
    pub root: PathBuf,
    /// `BATON_PLUGIN_DIR`.
    pub extra: Option<PathBuf>,
}

impl Places {
    /// The places of a gateway at `exe` with this root, `BATON_PLUGIN_DIR` included.
    pub fn of(exe: &Path, root: &Path) -> Self {
        Self {
            extra: std::env::var_os("BATON_PLUGIN_DIR").map(PathBuf::from),
            ..Self::beside(exe, root)
        }
    }

    /// The same without looking at the environment: what the demo uses.
    pub fn beside(exe: &Path, root: &Path) -> Self {
        Self {
            exe_dir: exe.parent().map(Path::to_path_buf).unwrap_or_default(),
            root: root.to_path_buf(),
            extra: None,
        }
    }

    fn candidates(&self, name: &str) -> Vec<PathBuf> {
        let library = library_name(name);
        let mut folders = Vec::new();
        folders.extend(self.extra.clone());
        folders.push(self.exe_dir.join("../lib/baton/plugins"));
        folders.push(self.root.join("plugins"));
        // `deps` first: a workspace build leaves a copy beside the executable that later runs do not refresh.
        folders.push(self.exe_dir.join("deps"));
        folders.push(self.exe_dir.clone());
        folders
            .into_iter()
            .map(|folder| folder.join(&library))
            .collect()
    }

    /// The executable's own folders are as trusted as the executable.
    fn own(&self, file: &Path) -> bool {
        let folders = [
            self.exe_dir.clone(),
            self.exe_dir.join("deps"),
            self.exe_dir.join("../lib"),
            self.exe_dir.join("../lib/baton/plugins"),
        ];
        let parent = file.parent().and_then(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| {
            folders
                .iter()
                .any(|folder| folder.canonicalize().is_ok_and(|own| own == parent))
        })
    }
}

/// `quota` → `libplugin_quota.so`.
pub(crate) fn library_name(name: &str) -> String {
    let extension = if cfg!(target_os = "macos") {
        "dylib"
    } else {
        "so"
    };
    format!("libplugin_{}.{extension}", name.replace('-', "_"))
}

/// The name behind a library's file name; `None` = not of that form.
pub(crate) fn plugin_name(file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_str()?;
    Some(stem.strip_prefix("libplugin_")?.to_owned())
}

/// Finds the library of a plugin: the configured file, else the first place that has it.
pub(crate) fn find(
    name: &str,
    settings: &PluginFile,
    places: &Places,
) -> Result<PathBuf, LoadError> {
    if let Some(file) = &settings.file {
        return Ok(file.clone());
    }
    let tried = places.candidates(name);
    match tried.iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(found) => Ok(found.clone()),
        None => Err(LoadError::NotFound {
            name: name.to_owned(),
            tried,
        }),
    }
}

/// A library's bytes, read once, and their checksum.
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sha256: String,
}

/// Reads a library after checking whom it belongs to and that its checksum is the expected one.
pub(crate) fn read(
    file: &Path,
    settings: &PluginFile,
    places: &Places,
) -> Result<Bytes, LoadError> {
    let mut opened = open(file)?;
    let about = opened.metadata().map_err(|error| LoadError::Unreadable {
        file: file.to_path_buf(),
        error,
    })?;
    if !places.own(file) {
        trust(file, &about)?;
    }
    let read = hashed(slurp(&mut opened, file)?);
    for (expected, from) in [
        (settings.sha256.clone(), "the configuration"),
        (recorded_checksum(file), "`baton plugin install`"),
    ] {
        if expected.is_some_and(|expected| !expected.trim().eq_ignore_ascii_case(&read.sha256)) {
            return Err(LoadError::Checksum {
                file: file.to_path_buf(),
                from,
            });
        }
    }
    Ok(read)
}

/// Reads a library a person named on the command line: no rule of trust beyond theirs.
pub(crate) fn read_named(file: &Path) -> Result<Vec<u8>, LoadError> {
    let mut opened = open(file)?;
    slurp(&mut opened, file)
}

/// Takes the checksum of a library.
pub(crate) fn hashed(bytes: Vec<u8>) -> Bytes {
    let digest = Sha256::digest(&bytes);
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Bytes { bytes, sha256 }
}

/// Where `plugin install` records the checksum of an installed library.
pub(crate) fn checksum_file(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sha256");
    PathBuf::from(name)
}

fn recorded_checksum(file: &Path) -> Option<String> {
    std::fs::read_to_string(checksum_file(file)).ok()
}

fn open(file: &Path) -> Result<File, LoadError> {
    let unreadable = |error| LoadError::Unreadable {
        file: file.to_path_buf(),
        error,
    };
    // Before opening: a pipe would block.
    let about = std::fs::metadata(file).map_err(unreadable)?;
    if !about.is_file() {
        return Err(LoadError::NotALibrary {
            file: file.to_path_buf(),
            why: "not a regular file".into(),
        });
    }
    File::open(file).map_err(unreadable)
}

fn slurp(opened: &mut File, file: &Path) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    opened
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| LoadError::Unreadable {
            file: file.to_path_buf(),
            error,
        })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(LoadError::NotALibrary {
            file: file.to_path_buf(),
            why: "larger than 64 MiB".into(),
        });
    }
    Ok(bytes)
}

/// The file and every folder above it belong to root or us, and nobody else may write there.
fn trust(file: &Path, about: &Metadata) -> Result<(), LoadError> {
    check_one(file, about)?;
    let resolved = file.canonicalize().map_err(|error| LoadError::Unreadable {
        file: file.to_path_buf(),
        error,
    })?;
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    for folder in resolved
        .ancestors()
        .skip(1)
        .chain(absolute.ancestors().skip(1))
    {
        let about = std::fs::metadata(folder).map_err(|error| LoadError::Unreadable {
            file: folder.to_path_buf(),
            error,
        })?;
        check_one(folder, &about)?;
    }
    Ok(())
}

fn check_one(path: &Path, about: &Metadata) -> Result<(), LoadError> {
    let us = rustix::process::geteuid().as_raw();
    let untrusted = |why: String| LoadError::Untrusted {
        file: path.to_path_buf(),
        why,
    };
    if about.uid() != 0 && about.uid() != us {
        return Err(untrusted(format!(
            "it belongs to user {}, not to root or to the gateway's user {us}",
            about.uid()
        )));
    }
    let open_to_all = about.mode() & WORLD_WRITABLE != 0;
    let sticky_folder = about.is_dir() && about.mode() & STICKY != 0;
    if open_to_all && !sticky_folder {
        return Err(untrusted("everybody may write to it".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap();
    }

    #[test]
    fn the_first_place_that_has_the_file_wins_and_a_miss_lists_all() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places {
            exe_dir: dir.path().join("bin"),
            root: dir.path().join("root"),
            extra: Some(dir.path().join("extra")),
        };
        let none = PluginFile::default();
        let missing = find("quota", &none, &places).unwrap_err().to_string();
        for place in [
            "extra/",
            "../lib/baton/plugins/",
            "root/plugins/",
            "bin/deps/",
            "bin/libplugin",
        ] {
            assert!(missing.contains(place), "{place} in {missing}");
        }
        let mut expected = Vec::new();
        for place in [
            "bin",
            "bin/deps",
            "root/plugins",
            "lib/baton/plugins",
            "extra",
        ] {
            let file = dir.path().join(place).join(library_name("quota"));
            touch(&file);
            let found = find("quota", &none, &places).unwrap();
            assert_eq!(found.canonicalize().unwrap(), file.canonicalize().unwrap());
            expected.push(found);
        }
        let named = PluginFile {
            file: Some("/somewhere/else.so".into()),
            sha256: None,
        };
        assert_eq!(
            find("quota", &named, &places).unwrap(),
            Path::new("/somewhere/else.so")
        );
    }

    #[test]
    fn a_world_writable_file_or_folder_is_not_trusted_outside_the_executables_own() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places::beside(&dir.path().join("bin/baton"), dir.path());
        let file = dir.path().join("plugins").join(library_name("x"));
        touch(&file);
        let none = PluginFile::default();
        assert!(read(&file, &none, &places).is_ok());
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&file, 0o666);
        let error = read(&file, &none, &places).map(|_| ()).unwrap_err();
        assert!(
            error.to_string().contains("everybody may write to it"),
            "{error}"
        );
        mode(&file, 0o600);
        mode(file.parent().unwrap(), 0o777);
        assert!(matches!(
            read(&file, &none, &places),
            Err(LoadError::Untrusted { .. })
        ));
        mode(file.parent().unwrap(), 0o1777);
        assert!(
            read(&file, &none, &places).is_ok(),
            "sticky folders are all right"
        );
        mode(file.parent().unwrap(), 0o777);
        let own = Places::beside(&file.parent().unwrap().join("baton"), dir.path());
        assert!(
            read(&file, &none, &own).is_ok(),
            "the executable's own folder is as trusted as it"
        );
    }

    #[test]
    fn a_recorded_or_configured_checksum_must_match() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places::beside(&dir.path().join("bin/baton"), dir.path());
        let file = dir.path().join(library_name("x"));
        touch(&file);
        let sha256 = read(&file, &PluginFile::default(), &places).unwrap().sha256;
        assert!(sha256.starts_with("e3b0c442"), "SHA-256 of nothing");
        let pinned = |sum: &str| PluginFile {
            file: None,
            sha256: Some(sum.into()),
        };
        assert!(read(&file, &pinned(&sha256.to_uppercase()), &places).is_ok());
        assert!(matches!(
            read(&file, &pinned("00"), &places),
            Err(LoadError::Checksum { .. })
        ));
        touch(&checksum_file(&file)); // an empty record matches nothing
        assert!(matches!(
            read(&file, &PluginFile::default(), &places),
            Err(LoadError::Checksum {
                from: "`baton plugin install`",
                ..
            })
        ));
    }
}
