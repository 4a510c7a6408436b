//! Slash commands, made known to Discord: compared first, written only if they differ, in one overwrite a scope, and the
//! other scope emptied before, because a name in both is listed twice. Discord counts creations (200 a day and scope), so an
//! unchanged start sends nothing.

use std::time::Duration;

use commands::surface::discord::{DiscordCommand, Registered, Step, fit, steps};
use gateway_core::command::CommandSpec;
use platforms::adapter::{Finding, Severity};
use serde_json::{Value, json};
use serenity::http::{LightMethod, Route};
use serenity::model::id;
use tokio::time::Instant;

use crate::Core;
use crate::body;
use crate::event::Gone;
use crate::finding::fatal;
use crate::refusal::Trouble;
use crate::settings::{CommandScope, snowflake};

const PATIENCE: Duration = Duration::from_secs(30);

/// Where a set of commands stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Global,
    Guild(u64),
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Global => f.write_str("everywhere"),
            Self::Guild(guild) => write!(f, "in server {guild}"),
        }
    }
}

impl Core {
    pub(crate) async fn register(&self, specs: &[&CommandSpec]) -> Result<Vec<Finding>, Finding> {
        let Some(me) = self.me() else {
            return Err(fatal("Discord was not checked before registering.", ""));
        };
        let fitted = fit(specs, &self.settings.command_prefix).map_err(|misfits| {
            let all: Vec<String> = misfits.iter().map(ToString::to_string).collect();
            fatal(&format!("{}.", all.join("; ")), "")
        })?;
        self.remember_audiences(specs);
        let mut found: Vec<Finding> = fitted
            .demoted
            .iter()
            .map(|demoted| finding(Severity::Warning, format!("Discord: {demoted}."), ""))
            .collect();
        let (wanted, emptied) = self.scopes().await;
        let scopes = emptied.into_iter().map(|scope| (scope, &[][..]));
        let scopes = scopes.chain(
            wanted
                .into_iter()
                .map(|scope| (scope, &fitted.commands[..])),
        );
        for (scope, want) in scopes {
            found.extend(self.bring(me.application, scope, want).await);
        }
        Ok(found)
    }

    fn remember_audiences(&self, specs: &[&CommandSpec]) {
        let mut audiences = self.audiences.lock();
        for spec in specs {
            let names = std::iter::once(&spec.name).chain(spec.aliases);
            audiences.extend(names.map(|name| ((*name).to_owned(), spec.audience)));
        }
    }

    /// Those that get the commands, and those that are emptied.
    async fn scopes(&self) -> (Vec<Scope>, Vec<Scope>) {
        let guild = |id: &String| snowflake(id).map(Scope::Guild);
        match &self.settings.commands {
            CommandScope::Guilds(guilds) => (
                guilds.iter().filter_map(guild).collect(),
                vec![Scope::Global],
            ),
            CommandScope::Global => {
                let mut named = self.settings.guilds.clone();
                if named.is_empty() {
                    let all = self.look::<Vec<Gone>>(Route::UserMeGuilds).await;
                    named = all
                        .unwrap_or_default()
                        .into_iter()
                        .map(|one| one.id)
                        .collect();
                }
                (
                    vec![Scope::Global],
                    named.iter().filter_map(guild).collect(),
                )
            }
        }
    }

    /// Makes a scope hold `want` and nothing else.
    async fn bring(
        &self,
        application: u64,
        scope: Scope,
        want: &[DiscordCommand],
    ) -> Option<Finding> {
        let application = id::ApplicationId::new(application);
        let have = match self.listed(application, scope).await {
            Ok(have) => have,
            // Not in that server, so nothing of ours is listed there.
            Err(Trouble::Refused(_)) if want.is_empty() => return None,
            Err(trouble) => return Some(failed(scope, &trouble)),
        };
        let want: Vec<DiscordCommand> = want
            .iter()
            .map(|command| as_listed(command, scope))
            .collect();
        let todo = steps(&want, &have);
        if todo.is_empty() {
            return (!want.is_empty()).then(|| {
                let what = format!("Discord: {} commands stand {scope} already.", want.len());
                finding(Severity::Fine, what, "")
            });
        }
        let bodies: Value = want.iter().map(body_of).collect();
        let request = body::request(route(application, scope), LightMethod::Put, &bodies, None);
        let until = Instant::now() + PATIENCE;
        match self.rest.patiently(request, until).await {
            Ok(_) => Some(finding(Severity::Fine, said(scope, &todo), "")),
            Err(trouble) => Some(failed(scope, &trouble)),
        }
    }

    async fn listed(
        &self,
        application: id::ApplicationId,
        scope: Scope,
    ) -> Result<Vec<Registered>, Trouble> {
        let listed: Vec<Value> = self.look(route(application, scope)).await?;
        let read = |command: Value| {
            let registered = serde_json::from_value::<Registered>(without_nulls(command));
            registered.map(|one| Registered {
                command: as_listed(&one.command, scope),
                ..one
            })
        };
        let all: Result<Vec<Registered>, _> = listed.into_iter().map(read).collect();
        all.map_err(|error| Trouble::Uncertain(format!("the list cannot be read: {error}")))
    }
}

/// Servers' own commands have no `contexts` (they are for global ones).
fn as_listed(command: &DiscordCommand, scope: Scope) -> DiscordCommand {
    let mut command = command.clone();
    if scope != Scope::Global {
        command.contexts.clear();
    }
    command
}

fn body_of(command: &DiscordCommand) -> Value {
    let mut body = json!(command);
    if let Some(body) = body.as_object_mut().filter(|_| command.contexts.is_empty()) {
        body.remove("contexts");
    }
    body
}

/// Discord lists what a command does not have as null.
fn without_nulls(mut command: Value) -> Value {
    if let Some(object) = command.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    command
}

fn route(application_id: id::ApplicationId, scope: Scope) -> Route<'static> {
    match scope {
        Scope::Global => Route::Commands { application_id },
        Scope::Guild(guild) => Route::GuildCommands {
            application_id,
            guild_id: id::GuildId::new(guild),
        },
    }
}

fn said(scope: Scope, todo: &[Step]) -> String {
    let count = |is: fn(&Step) -> bool| todo.iter().filter(|step| is(step)).count();
    format!(
        "Discord: commands {scope}: {} created, {} changed, {} deleted.",
        count(|step| matches!(step, Step::Create(_))),
        count(|step| matches!(step, Step::Change { .. })),
        count(|step| matches!(step, Step::Delete { .. })),
    )
}

/// What stood there before goes on working, so this does not stop anything.
fn failed(scope: Scope, trouble: &Trouble) -> Finding {
    let hint = match trouble {
        Trouble::Refused(refusal) => match refusal.code {
            30_034 => "Discord takes 200 new commands a day; start again tomorrow.",
            30_032 => "Discord takes 100 commands; take some out.",
            50_001 => "Invite the bot again with the scope applications.commands.",
            _ => "",
        },
        _ => "Start again once Discord answers.",
    };
    let what = format!("Discord: the commands {scope} are as they were: {trouble}.");
    finding(Severity::Warning, what, hint)
}

fn finding(severity: Severity, what: String, hint: &str) -> Finding {
    Finding {
        severity,
        what,
        hint: hint.to_owned(),
    }
}
