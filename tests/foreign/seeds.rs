//! What the bodies start from: recordings of the real programs and cases people met, each line and each file.

use std::path::Path;

use super::bodies::Body;

const LONGEST: usize = 32 * 1024;

/// The seeds of a body, in the order of the files' names.
pub(crate) fn seeds_of(body: &Body) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seeds = Vec::new();
    for (folder, end) in body.seeds {
        let mut files: Vec<_> = std::fs::read_dir(root.join(folder))
            .unwrap_or_else(|why| panic!("{folder}: {why}"))
            .map(|entry| entry.expect("a readable folder").path())
            .filter(|path| path.is_file() && path.to_string_lossy().ends_with(end))
            .collect();
        files.sort();
        for file in files {
            let text = std::fs::read(&file).expect("a readable seed");
            if file.extension().is_some_and(|end| end == "jsonl") {
                seeds.extend(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
            }
            seeds.push(text);
        }
    }
    seeds.iter_mut().for_each(|seed| seed.truncate(LONGEST));
    seeds.retain(|seed| !seed.is_empty());
    seeds.sort();
    seeds.dedup();
    seeds
}
