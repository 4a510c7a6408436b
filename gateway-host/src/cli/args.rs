//! What can be typed. Help texts are part of the product: they say what a command does, in one line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

/// The work goes on when a subscription runs out.
#[derive(Debug, Parser)]
#[command(
    name = "baton",
    version,
    about = "Baton: the work goes on when a subscription runs out.",
    after_help = "Files live below BATON_HOME (default ~/.baton). BATON_LOG says what stderr shows, for example BATON_LOG=info.\nExit codes: 0 done; 1 failed, or a check found something; 2 wrong usage or a bad configuration.",
    disable_help_subcommand = true
)]
pub(crate) struct Args {
    /// Print machine-readable output on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the product in a minute, without any account
    Demo {
        /// Without pauses for reading
        #[arg(long)]
        fast: bool,
        /// What is played
        #[arg(long, value_enum, default_value_t)]
        scene: crate::demo::Scene,
    },
    /// Look for CLIs and keys, propose a chain, write config.toml
    Init {
        /// Write without asking
        #[arg(long)]
        yes: bool,
    },
    /// Talk in the terminal to a profile's chain
    Chat {
        /// The profile; `default` unless named
        #[arg(long, value_name = "P")]
        profile: Option<String>,
    },
    /// List, show or discard saved handoffs
    #[command(subcommand)]
    Handoff(HandoffTopic),
    /// List, check or install plugins
    #[command(subcommand)]
    Plugin(PluginTopic),
    /// Answer JSON lines from stdin: what would it do with this?
    #[command(subcommand)]
    Explain(Topic),
    /// Look at everything a turn needs, each with a hint
    Doctor,
    /// Check, describe or show the configuration
    #[command(subcommand)]
    Config(ConfigTopic),
    /// Serve Discord and Slack until stopped; the first SIGTERM or Ctrl-C ends in order, the second at once
    Run(RunArgs),
    /// Show every subscription's windows: used, reset, age of the reading, verdict
    Usage(UsageArgs),
    /// Replay one turn's decisions: what was known, who was considered, why each other one was not taken
    Why {
        /// The turn's id; the newest one without it
        turn: Option<String>,
    },
    /// Print the manifest of the Slack app, to make it from
    SlackManifest {
        /// The profile whose command prefix it has; not needed while they agree
        #[arg(long, value_name = "P")]
        profile: Option<String>,
    },
    /// Show which slash commands are registered where, and what a platform's cap demoted
    Commands {
        /// Only this profile's; every profile unless named
        #[arg(long, value_name = "P")]
        profile: Option<String>,
    },
    /// Bring over the chain and the usage registry's place from another gateway
    #[command(subcommand)]
    Import(ImportTopic),
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum ConfigTopic {
    /// Say everything that is wrong with the configuration
    Check,
    /// Print the JSON Schema of config.toml, for editors
    Schema,
    /// Print every value in use with where it comes from
    Show,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HandoffTopic {
    /// One line per saved handoff, newest first
    List,
    /// One handoff whole, redacted; nothing is consumed
    Show {
        /// A handoff's id, the beginning of one, or a session key
        key: String,
    },
    /// Drop a handoff: it will not be injected
    Discard {
        /// A handoff's id, the beginning of one, or a session key
        key: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginTopic {
    /// Every plugin of every profile with its state
    List,
    /// Run the conformance kit on a library, each test in a process of its own
    Check {
        /// The library
        file: PathBuf,
        /// A configuration for it, as a JSON file
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Check a library, copy it to <root>/plugins and record its checksum
    Install {
        /// The library
        file: PathBuf,
    },
    #[command(hide = true)]
    Probe { file: PathBuf },
    #[command(hide = true)]
    CheckOne {
        file: PathBuf,
        test: String,
        #[arg(long, allow_hyphen_values = true)]
        config: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportTopic {
    /// From a Hermes home, usually ~/.hermes; shows what it would write and asks
    Hermes {
        /// The folder that holds its config.yaml
        dir: PathBuf,
        /// The profile that gets the chain; `default`, or `hermes` if that is taken
        #[arg(long, value_name = "P")]
        profile: Option<String>,
        /// Write without asking
        #[arg(long)]
        yes: bool,
    },
}

/// What `usage` shows, and whether it asks first.
#[derive(Debug, ClapArgs)]
pub(crate) struct UsageArgs {
    /// Go on showing, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
    /// Show what is known, and ask nobody
    #[arg(long)]
    pub(crate) no_probe: bool,
    /// Only this profile's chain; every subscription unless named
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
}

/// What `run` serves, and how it ends.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Only these profiles; every one with a platform unless named
    #[arg(long, value_name = "P")]
    pub(crate) profile: Vec<String>,
    /// How long running turns get when it is to stop; 20s unless named
    #[arg(long, value_name = "TIME")]
    pub(crate) drain: Option<String>,
    /// Forget operators by pairing, and offer new codes
    #[arg(long)]
    pub(crate) pair: bool,
}

/// What `explain` explains.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Topic {
    /// A failure's class, scope and what follows
    Failure,
    /// What a registry says about a subscription
    Usage,
    /// What would be decided in a scenario
    Decision,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Args::command().debug_assert();
    }
}
