//! The working directory as the file tools will see it: what below it must stay closed. Read before each turn that has
//! file tools; at those levels the agent can make no links, so what was read holds for the turn.

use std::path::{Path, PathBuf};

/// The most entries looked at. Above it the directory is refused: a link that was not seen would be followed.
pub(super) const MAX_ENTRIES: usize = 500_000;

/// What the rules need to know of a working directory. Patterns are relative to the program's worktree: the repository
/// the directory lies in, or the root of the file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ground {
    /// The working directory, relative to the worktree; empty = it is the worktree.
    pub(super) below: String,
    /// Nothing below has to be hidden from a search.
    pub(super) searchable: bool,
    /// Patterns that stay closed.
    pub(super) denied: Vec<String>,
}

impl Ground {
    /// The patterns of everything below the working directory.
    pub(super) fn inside(&self) -> Vec<String> {
        match self.below.is_empty() {
            true => vec!["*".to_owned()],
            false => vec![self.below.clone(), format!("{}/*", self.below)],
        }
    }

    /// A name below the working directory as a pattern.
    pub(super) fn pattern(&self, name: &str) -> String {
        match self.below.is_empty() {
            true => name.to_owned(),
            false => format!("{}/{name}", self.below),
        }
    }
}

/// Looks through `workdir`, both paths with their links resolved. `hidden` are folders no tool may reach. Blocks.
///
/// # Errors
/// When the directory cannot be looked through, or has more than `most` entries.
pub(super) fn survey(
    workdir: &Path,
    worktree: &Path,
    hidden: &[PathBuf],
    most: usize,
) -> Result<Ground, String> {
    let mut ground = Ground {
        below: pattern(workdir.strip_prefix(worktree).unwrap_or(workdir)),
        // In a repository a search may be pointed at any of its folders.
        searchable: worktree == workdir || worktree.parent().is_none(),
        denied: Vec::new(),
    };
    let mut closed: Vec<PathBuf> = Vec::new();
    for folder in hidden {
        if workdir.starts_with(folder) {
            closed.push(workdir.to_owned());
            ground.searchable = false;
        } else if folder.starts_with(workdir) {
            closed.push(folder.clone());
            ground.searchable = false;
        }
    }
    for link in links(workdir, most)? {
        match link.canonicalize() {
            Ok(target) if is_open(&target, workdir, hidden) && target.is_file() => {}
            Ok(target) => {
                ground.searchable &= is_open(&target, workdir, hidden);
                closed.push(link);
            }
            // It leads nowhere yet: a write through it could still make a file outside.
            Err(_) => closed.push(link),
        }
    }
    for path in closed {
        let path = pattern(path.strip_prefix(worktree).unwrap_or(&path));
        match path.is_empty() {
            true => ground.denied.push("*".to_owned()),
            false => ground.denied.extend([path.clone(), format!("{path}/*")]),
        }
    }
    Ok(ground)
}

fn is_open(target: &Path, workdir: &Path, hidden: &[PathBuf]) -> bool {
    target.starts_with(workdir) && !hidden.iter().any(|folder| target.starts_with(folder))
}

/// Every symbolic link below a folder. A folder that cannot be read is one the tools cannot read either.
fn links(folder: &Path, most: usize) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error| format!("the working directory cannot be looked through: {error}");
    let mut links = Vec::new();
    let mut seen = 0_usize;
    let mut waiting = vec![std::fs::read_dir(folder).map_err(unreadable)?];
    while let Some(mut entries) = waiting.pop() {
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else { continue };
            seen += 1;
            if seen > most {
                return Err(format!(
                    "the working directory {} holds more than {most} files, too many to look for links that lead out of it; choose a smaller one, or permissions = \"none\"",
                    folder.display()
                ));
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_symlink() {
                links.push(entry.path());
            } else if kind.is_dir()
                && let Ok(below) = std::fs::read_dir(entry.path())
            {
                waiting.push(entries);
                entries = below;
            }
        }
    }
    Ok(links)
}

/// The path as a pattern without a slash at its ends: whatever has a meaning there becomes `?`, which matches any one
/// character.
fn pattern(path: &Path) -> String {
    path.to_string_lossy()
        .trim_matches('/')
        .chars()
        .map(|c| if "*?\\\u{fffd}".contains(c) { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for folder in ["repo/work/sub", "outside", "repo/work/gateway"] {
                std::fs::create_dir_all(tree.path(folder)).unwrap();
            }
            for file in ["repo/work/in.txt", "outside/o.txt", "repo/work/gateway/db"] {
                std::fs::File::create(tree.path(file)).unwrap();
            }
            tree
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn survey(&self, worktree: &str, hidden: &[PathBuf]) -> Ground {
            survey(&self.path("repo/work"), &self.path(worktree), hidden, 1000).unwrap()
        }
    }

    #[test]
    fn a_plain_directory_has_nothing_to_hide() {
        let ground = Tree::new().survey("repo/work", &[]);
        assert_eq!(
            ground,
            Ground {
                below: String::new(),
                searchable: true,
                denied: Vec::new()
            }
        );
    }

    #[test]
    fn links_that_lead_out_are_closed_and_end_the_search() {
        let tree = Tree::new();
        symlink(tree.path("repo/work/in.txt"), tree.path("repo/work/same")).unwrap();
        symlink(tree.path("nowhere"), tree.path("repo/work/dangling")).unwrap();
        symlink(tree.path("repo/work/sub"), tree.path("repo/work/folder")).unwrap();
        let ground = tree.survey("repo/work", &[]);
        let mut denied = ground.denied.clone();
        denied.sort();
        assert_eq!(denied, ["dangling", "dangling/*", "folder", "folder/*"]);
        assert!(ground.searchable);
        symlink(tree.path("outside/o.txt"), tree.path("repo/work/sub/out*")).unwrap();
        let ground = tree.survey("repo", &[]);
        assert!(ground.denied.contains(&"work/sub/out?".to_owned()));
        assert!(!ground.searchable && ground.below == "work");
    }

    #[test]
    fn a_hidden_folder_below_is_closed_and_one_around_closes_all() {
        let tree = Tree::new();
        let below = tree.survey("repo/work", &[tree.path("repo/work/gateway")]);
        assert_eq!(below.denied, ["gateway", "gateway/*"]);
        assert!(!below.searchable);
        symlink(
            tree.path("repo/work/gateway/db"),
            tree.path("repo/work/sub/db"),
        )
        .unwrap();
        let linked = tree.survey("repo/work", &[tree.path("repo/work/gateway")]);
        assert!(linked.denied.contains(&"sub/db".to_owned()));
        let around = tree.survey("repo/work", &[tree.path("repo")]);
        assert_eq!(around.denied.first().map(String::as_str), Some("*"));
        assert!(!around.searchable);
    }

    #[test]
    fn too_many_files_are_refused() {
        let tree = Tree::new();
        let refused = survey(&tree.path("repo/work"), &tree.path("repo/work"), &[], 2);
        assert!(refused.unwrap_err().contains("more than 2 files"));
    }
}
