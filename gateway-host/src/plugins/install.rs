//! `baton plugin install`: a checked library is copied into `<root>/plugins` with its checksum beside it.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use atomic_write_file::AtomicWriteFile;

use super::find::{self, checksum_file, library_name};
use super::load::{self, LoadError};
use super::{elf, find::Bytes};

/// What was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub name: String,
    pub version: String,
    pub file: PathBuf,
    pub sha256: String,
}

/// Checks a library (bytes, child probe, contract) and copies it to `<root>/plugins`.
///
/// # Errors
/// Whatever keeps the library from loading, or the copy from being written.
pub async fn install(file: &Path, root: &Path, exe: &Path) -> Result<Installed, LoadError> {
    let read = find::hashed(find::read_named(file)?);
    elf::check(&read.bytes).map_err(|why| LoadError::NotALibrary {
        file: file.to_path_buf(),
        why,
    })?;
    let run = root.join("state").join("run");
    let unwritable = |error| LoadError::Unreadable {
        file: root.to_path_buf(),
        error,
    };
    let copy = load::private_copy(&read.bytes, &read.sha256, &run).map_err(unwritable)?;
    let named = |error: LoadError| error.about(file);
    load::probe(exe, &copy, &[]).await.map_err(named)?;
    let opened = load::open(&copy).map_err(named)?;
    // The configuration calls it by its file name; a file of another form is known by its id.
    let name = find::plugin_name(file).unwrap_or_else(|| opened.manifest.id.to_string());
    let target = write(&read, &name, &root.join("plugins")).map_err(unwritable)?;
    Ok(Installed {
        name,
        version: opened.manifest.version.to_string(),
        file: target,
        sha256: read.sha256,
    })
}

fn write(read: &Bytes, name: &str, folder: &Path) -> std::io::Result<PathBuf> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let target = folder.join(library_name(name));
    // The checksum first: a crash in between leaves a library that is refused, never one that is not checked.
    replace(&checksum_file(&target), read.sha256.as_bytes(), 0o600)?;
    replace(&target, &read.bytes, 0o700)?;
    Ok(target)
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file = AtomicWriteFile::open(path)?;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.commit()
}
