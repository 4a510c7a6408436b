//! `baton demo`: the main job in a minute, without any account. It makes its own temporary home, reads no configuration,
//! key or plugin folder of yours, and dials only the ports it opened. The gateway in it is the real one: real sockets,
//! the real store, the two plugins loaded from their files. What the last line counts was counted at the upstream
//! servers and at the chat surface.

mod routing;
mod scenes;
mod stage;
mod world;

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

/// How to play.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// No pauses for reading.
    pub fast: bool,
    /// One JSON event per line instead of a chat.
    pub json: bool,
    /// What is played.
    pub scene: Scene,
    /// The running program: it probes the plugins, and they lie beside it.
    pub executable: PathBuf,
}

/// What the demo plays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Scene {
    /// The main job: skipped on proof, cut, previewed, picked up.
    #[default]
    Main,
    /// Quota-aware continuation.
    Routing,
}

/// Plays all scenes; `out` is where the chat goes.
pub async fn run(options: Options, out: Box<dyn Write + Send>) -> anyhow::Result<()> {
    let stage = stage::Stage::new(out, options.fast, options.json);
    if options.scene == Scene::Routing {
        return routing::play(&options, &stage).await;
    }
    let world = world::World::build(&options, stage.clone()).await?;
    let played = scenes::play(&world, &stage).await;
    let counters = world.counters(&stage);
    world.close().await;
    played?;
    stage.close(&counters);
    Ok(())
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    pub requests_total: usize,
    /// Requests that reached the servers of the subscriptions the published registry knew to be spent.
    pub requests_to_exhausted: usize,
    /// The most status messages any one turn showed.
    pub status_lines: usize,
    pub handoffs_sealed: usize,
    pub previews: usize,
    /// Requests that carried a handoff.
    pub injections: usize,
    /// CLI sessions retired; there is no session bridge yet.
    pub rotations: usize,
    pub answers: usize,
}

impl Counters {
    fn to_json(self) -> serde_json::Value {
        json!({
            "requests_total": self.requests_total,
            "requests_to_exhausted": self.requests_to_exhausted,
            "status_lines": self.status_lines,
            "handoffs_sealed": self.handoffs_sealed,
            "previews": self.previews,
            "injections": self.injections,
            "rotations": self.rotations,
            "answers": self.answers,
        })
    }
}
