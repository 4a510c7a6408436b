//! The plugin's own `tracing` events, sent to the gateway's log. A library has its own dispatcher, so setting it here
//! clashes with nothing outside.

use std::fmt::{Debug, Write};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::services::{Host, Level};

/// Installs the forwarding subscriber, once per library.
pub(crate) fn install(host: &Host) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let forward = tracing_subscriber::registry().with(Forward(host.clone()));
        // Refused only if the plugin set its own; then that one is what its author wants.
        let _ = tracing::subscriber::set_global_default(forward);
    });
}

struct Forward(Host);

impl<S: Subscriber> Layer<S> for Forward {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        };
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.log(level, line.0.trim_start());
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
