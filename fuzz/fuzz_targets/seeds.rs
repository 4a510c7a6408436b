//! Writes the seeds of every parser below the folder named, one folder each, and prints the parsers' names.

#[allow(dead_code, reason = "shared with the property tests")]
#[path = "../../tests/foreign/bodies.rs"]
mod bodies;
#[path = "../../tests/foreign/seeds.rs"]
mod seeds;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("usage: seeds FOLDER"));
    for body in bodies::BODIES {
        let folder = folder.join(body.name);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in seeds::seeds_of(body).iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number:05}")), seed)?;
        }
        println!("{}", body.name);
    }
    Ok(())
}
