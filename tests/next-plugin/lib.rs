//! A plugin built with the next minor version of plugin-api, which has one hook more: tests load its library into this
//! version's gateway.

use plugin_api_next::prelude::*;

struct Next;

impl GatewayPlugin for Next {
    const ID: &'static str = "next";
    const VERSION: &'static str = "2.0.0";

    fn capabilities() -> Capabilities {
        Capabilities::PROLOGUE
    }

    fn create(_: Host, _: &str) -> Result<Self, ConfigError> {
        Ok(Self)
    }

    fn prologue(&mut self, _: &PrologueContext<'_>) -> Answer<PrologueAdvice> {
        let line = "said by a plugin of the next version".to_owned();
        Ok(Some(PrologueAdvice {
            status_line: Some(line),
            ..PrologueAdvice::default()
        }))
    }

    fn on_idle(&mut self, _: i64) {}
}

plugin_api_next::export_plugin!(Next);
