//! plugin-quota: leaves out of a turn what the usage registry knows to be spent. It holds no state and reads no clock:
//! whether a gate has run, what was skipped and whether the line was shown come with each call, and the arithmetic is
//! `gateway-core`'s. It does not decide who answers: it only names positions and says one line.

mod gate;
mod settings;

use gateway_core::plan::GateSettings;
use plugin_api::prelude::*;

/// The plugin.
struct Quota {
    settings: GateSettings,
}

impl GatewayPlugin for Quota {
    const ID: &'static str = "quota";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn capabilities() -> Capabilities {
        Capabilities::PROLOGUE.and(Capabilities::WALK)
    }

    fn config_schema() -> &'static str {
        settings::SCHEMA
    }

    fn create(_host: Host, config: &str) -> Result<Self, ConfigError> {
        let settings = settings::read(config)?;
        Ok(Self { settings })
    }

    fn prologue(&mut self, context: &PrologueContext<'_>) -> Answer<PrologueAdvice> {
        Ok(gate::head(context, self.settings))
    }

    fn before_walk(&mut self, context: &WalkContext<'_>) -> Answer<WalkAdvice> {
        Ok(gate::rest(context, self.settings))
    }
}

plugin_api::export_plugin!(Quota);
