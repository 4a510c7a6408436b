//! The contract between the gateway and its plugins, and the kit to write one. An outside plugin needs this crate only.
//!
//! ```no_run
//! use plugin_api::prelude::*;
//!
//! struct Hello { greetings: Counter }
//!
//! impl GatewayPlugin for Hello {
//!     const ID: &'static str = "hello";
//!     const VERSION: &'static str = "0.1.0";
//!
//!     fn capabilities() -> Capabilities { Capabilities::PROLOGUE }
//!
//!     fn create(host: Host, config: &str) -> Result<Self, ConfigError> {
//!         config::parse::<serde_json::Value>(config, &[])?;
//!         Ok(Self { greetings: host.counter("greetings") })
//!     }
//!
//!     fn prologue(&mut self, context: &PrologueContext<'_>) -> Answer<PrologueAdvice> {
//!         self.greetings.add(1);
//!         if context.turn.is_human() { none() } else { Err("only people are greeted".into()) }
//!     }
//! }
//!
//! plugin_api::export_plugin!(Hello);
//! # fn main() {}
//! ```
//!
//! Build it as a `cdylib` and name it in the gateway's configuration. All hooks default to "no opinion"; a panic, an
//! error or a late answer counts as none. Inputs are borrowed for the call, outputs are owned.
//!
//! # How the contract grows
//! Any 1.x plugin loads in any 1.x gateway. So that this stays true, and a golden file of the layout watches over it:
//! 1. A plain `repr(C)` struct is frozen for the major version; late facts travel in `attrs`.
//! 2. A new hook is a new method with a default body at the end of both traits, after `last_prefix_field`.
//! 3. A new event is a new variant of `TurnEvent`, whose reserved size never changes.
//! 4. A new root function comes after `last_prefix_field` as `missing_field(option)`.
//! 5. Nothing is renamed, reordered, removed or wrapped. Small enums are open `u8` codes.
//! 6. No generics, std, serde or tokio types, closures, or stored objects with lifetimes cross.

pub mod advice;
pub mod command;
pub mod config;
pub mod context;
pub mod convert;
pub mod descriptor;
pub mod event;
pub mod guard;
#[cfg(feature = "tracing")]
mod logging;
pub mod module;
pub mod plugin;
pub mod prologue;
pub mod records;
pub mod services;
pub mod terminal;
pub mod testing;
pub mod walk;

#[doc(hidden)]
pub use abi_stable;
pub use gateway_core;
pub use serde_json;

pub use descriptor::Descriptor;
pub use plugin::GatewayPlugin;

/// What a plugin's source usually needs.
pub mod prelude {
    pub use crate::advice::Skip;
    pub use crate::command::{CommandAdvice, CommandSpec, Invocation};
    pub use crate::config;
    pub use crate::context::TurnView;
    pub use crate::event::TurnEvent;
    pub use crate::plugin::{Answer, Capabilities, ConfigError, GatewayPlugin, none};
    pub use crate::prologue::{PrologueAdvice, PrologueContext};
    pub use crate::records::{
        DocumentRecord, DocumentState, JournalRecord, OutcomeCode, ReasonCode, RouteRecord,
        ScopeCode, SourceCode, StatusCode, WindowRecord,
    };
    pub use crate::serde_json;
    pub use crate::services::{Counter, Gauge, Host, Level};
    pub use crate::terminal::{TerminalAdvice, TerminalContext};
    pub use crate::walk::{WalkAdvice, WalkContext};
}

/// Exports a [`GatewayPlugin`] from a `cdylib`. Once per library.
// abi_stable's own `export_root_module` expands to `::abi_stable::…`, which an author's crate does not have; this builds
// the same static through `$crate`.
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty) => {
        #[allow(
            unsafe_code,
            non_upper_case_globals,
            reason = "the two symbols a gateway looks for"
        )]
        const _: () = {
            #[unsafe(no_mangle)]
            pub static BATON_PLUGIN_V1: $crate::Descriptor = $crate::Descriptor::of::<$plugin>();

            extern "C" fn erased_module() -> $crate::abi_stable::library::RootModuleResult {
                $crate::abi_stable::library::__call_root_module_loader(
                    $crate::guard::module::<$plugin>,
                )
            }

            #[unsafe(no_mangle)]
            pub static _1as_0lib_1header_0root_bmodule_bloader:
                $crate::abi_stable::library::LibHeader =
                // SAFETY: `erased_module` erases a `PluginModuleRef`, the type named here.
                unsafe {
                    $crate::abi_stable::library::LibHeader::from_constructor::<
                        $crate::module::PluginModuleRef,
                    >(
                        erased_module,
                        $crate::abi_stable::library::CheckTypeLayout::Yes,
                    )
                };
        };
    };
}
