//! Panics end inside the plugin. Every function the gateway calls runs under `catch_unwind` here, in the plugin's own
//! code: a panic that reached `abi_stable`'s glue would end the process. A payload is forgotten, because its `Drop` may
//! panic too, and the instance is dropped under the same guard.
#![allow(
    unsafe_code,
    reason = "ManuallyDrop, so that a panicking Drop is caught"
)]

use std::any::Any;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Once, OnceLock};

use abi_stable::erased_types::TD_Opaque;
use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::std_types::{RResult, RStr, RString, RVec};

use crate::command::{CommandAnswer, CommandSpec, Invocation};
use crate::event::TurnEvent_NE;
use crate::module::{Manifest, PluginModule, PluginModuleRef};
use crate::plugin::{
    Answer, ErrorKind, GatewayPlugin, Plugin, Plugin_TO, PluginBox, PluginError, Reply,
};
use crate::prologue::{PrologueAnswer, PrologueContext};
use crate::services::{Host, HostBox, Level};
use crate::terminal::{TerminalAnswer, TerminalContext};
use crate::walk::{WalkAnswer, WalkContext};

/// The root module of `P`, for `export_plugin!`.
pub fn module<P: GatewayPlugin>() -> PluginModuleRef {
    PluginModule {
        manifest: manifest::<P>,
        create: create::<P>,
        #[cfg(feature = "v-next")]
        build_info,
    }
    .leak_into_prefix()
}

extern "C" fn manifest<P: GatewayPlugin>() -> RResult<Manifest, PluginError> {
    caught(None, || Manifest {
        id: P::ID.into(),
        version: P::VERSION.into(),
        capabilities: P::capabilities(),
        config_schema: P::config_schema().into(),
        attrs: RVec::new(),
    })
}

extern "C" fn create<P: GatewayPlugin>(
    host: HostBox,
    config: RStr<'_>,
) -> RResult<PluginBox, PluginError> {
    let host = Host::new(host);
    install_panic_hook(&host);
    let made = caught(Some(&host), || {
        #[cfg(feature = "tracing")]
        crate::logging::install(&host);
        P::create(host.clone(), config.as_str())
    });
    match made {
        RResult::ROk(Ok(plugin)) => {
            let guarded = Guarded {
                plugin: ManuallyDrop::new(plugin),
                host,
            };
            RResult::ROk(Plugin_TO::from_value(guarded, TD_Opaque))
        }
        RResult::ROk(Err(error)) => RResult::RErr(PluginError {
            kind: ErrorKind::Config,
            path: error.path.into(),
            message: error.message.into(),
        }),
        RResult::RErr(error) => RResult::RErr(error),
    }
}

#[cfg(feature = "v-next")]
extern "C" fn build_info() -> RString {
    env!("PLUGIN_API_RUSTC").into()
}

/// An author's plugin behind the guard.
pub struct Guarded<P: GatewayPlugin> {
    plugin: ManuallyDrop<P>,
    host: Host,
}

impl<P: GatewayPlugin> Guarded<P> {
    fn ask<A, W: From<A>>(&mut self, hook: impl FnOnce(&mut P) -> Answer<A>) -> Reply<W> {
        let plugin = &mut *self.plugin;
        match caught(Some(&self.host), || {
            hook(plugin).map(|advice| advice.map(W::from))
        }) {
            RResult::ROk(Ok(advice)) => RResult::ROk(advice.into()),
            RResult::ROk(Err(message)) => RResult::RErr(PluginError {
                kind: ErrorKind::Failed,
                path: RString::new(),
                message: message.into(),
            }),
            RResult::RErr(error) => RResult::RErr(error),
        }
    }
}

impl<P: GatewayPlugin> Plugin for Guarded<P> {
    fn prologue(&mut self, context: &PrologueContext<'_>) -> Reply<PrologueAnswer> {
        self.ask(|plugin| plugin.prologue(context))
    }

    fn before_walk(&mut self, context: &WalkContext<'_>) -> Reply<WalkAnswer> {
        self.ask(|plugin| plugin.before_walk(context))
    }

    fn on_terminal(&mut self, context: &TerminalContext<'_>) -> Reply<TerminalAnswer> {
        self.ask(|plugin| plugin.on_terminal(context))
    }

    fn on_event(&mut self, event: &TurnEvent_NE) -> RResult<(), PluginError> {
        let plugin = &mut *self.plugin;
        // A variant this plugin's version does not know is passed over.
        caught(Some(&self.host), || {
            if let Ok(event) = event.as_enum() {
                plugin.on_event(event);
            }
        })
    }

    fn commands(&self) -> RResult<RVec<CommandSpec>, PluginError> {
        let plugin = &*self.plugin;
        caught(Some(&self.host), || plugin.commands().into())
    }

    fn on_command(&mut self, invocation: &Invocation<'_>) -> Reply<CommandAnswer> {
        self.ask(|plugin| plugin.on_command(invocation))
    }

    #[cfg(feature = "v-next")]
    fn on_idle(&mut self, now_ms: i64) -> RResult<(), PluginError> {
        let plugin = &mut *self.plugin;
        caught(Some(&self.host), || plugin.on_idle(now_ms))
    }
}

impl<P: GatewayPlugin> Drop for Guarded<P> {
    fn drop(&mut self) {
        let plugin = &mut self.plugin;
        // SAFETY: dropped here once; nothing touches the field afterwards.
        let dropped = caught(Some(&self.host), || unsafe { ManuallyDrop::drop(plugin) });
        if let RResult::RErr(error) = dropped {
            self.host
                .log(Level::Error, &format!("drop: {}", error.message));
        }
    }
}

thread_local! {
    /// The host of the call this thread is in; a panic outside any call has none.
    static CURRENT: RefCell<Option<Host>> = const { RefCell::new(None) };
    /// Where the last panic of this thread happened.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn caught<T>(host: Option<&Host>, call: impl FnOnce() -> T) -> RResult<T, PluginError> {
    let outer = CURRENT.replace(host.cloned());
    let result = catch_unwind(AssertUnwindSafe(call));
    CURRENT.set(outer);
    match result {
        Ok(value) => RResult::ROk(value),
        Err(payload) => {
            let message = words(&*payload);
            std::mem::forget(payload);
            let place = PLACE
                .take()
                .map(|at| format!(" at {at}"))
                .unwrap_or_default();
            RResult::RErr(PluginError {
                kind: ErrorKind::Panic,
                path: RString::new(),
                message: format!("{message}{place}").into(),
            })
        }
    }
}

fn words(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        return (*text).to_owned();
    }
    match payload.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => "a panic without words".to_owned(),
    }
}

/// A plugin library has its own std and so its own hook: without this its panics go to stderr as an unnamed thread's.
fn install_panic_hook(host: &Host) {
    static FIRST: OnceLock<Host> = OnceLock::new();
    static ONCE: Once = Once::new();
    let _ = FIRST.set(host.clone());
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info
                .location()
                .map(|at| format!("{}:{}", at.file(), at.line()));
            let in_call = CURRENT
                .try_with(|host| host.borrow().clone())
                .ok()
                .flatten();
            let outside = in_call.is_none();
            let host = in_call.or_else(|| FIRST.get().cloned());
            let message = words(info.payload());
            let at = place.as_deref().unwrap_or("an unknown place");
            if let Some(host) = host {
                host.log(Level::Error, &format!("panic: {message} at {at}"));
            }
            if outside {
                // A thread of the plugin's own, or a test it is linked into: the usual words on stderr too.
                before(info);
            }
            let _ = PLACE.try_with(|slot| slot.replace(place));
        }));
    });
}
