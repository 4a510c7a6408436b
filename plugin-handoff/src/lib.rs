//! plugin-handoff: seals what a cut turn leaves, and offers it to the next human turn of the conversation. It keeps
//! nothing itself: the gateway owns every document and does what is advised here; the words and the payload are
//! `gateway-core`'s.

mod claim;
mod seal;

use plugin_api::prelude::*;

const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {}
}"#;

/// The plugin.
struct HandoffPlugin;

impl GatewayPlugin for HandoffPlugin {
    const ID: &'static str = "handoff";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn capabilities() -> Capabilities {
        Capabilities::PROLOGUE.and(Capabilities::TERMINAL)
    }

    fn config_schema() -> &'static str {
        SCHEMA
    }

    fn create(_host: Host, config: &str) -> Result<Self, ConfigError> {
        config::parse::<serde_json::Value>(config, &[])?;
        Ok(Self)
    }

    fn prologue(&mut self, context: &PrologueContext<'_>) -> Answer<PrologueAdvice> {
        Ok(claim::advice(context))
    }

    fn on_terminal(&mut self, context: &TerminalContext<'_>) -> Answer<TerminalAdvice> {
        seal::advice(context)
    }
}

plugin_api::export_plugin!(HandoffPlugin);
