//! What is looked at before anything is served: the token, the privileged intent, the servers, the rights in the channels.
//! Everything is a request; nothing is changed.

use std::collections::HashMap;
use std::time::Duration;

use platforms::adapter::{Finding, Severity};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::id;
use tokio::time::Instant;

use crate::Core;
use crate::event::{Channel, Gone, User};
use crate::finding::{bad_token, fatal, warning};
use crate::gateway::MESSAGE_CONTENT_HINT;
use crate::inbound::Me;
use crate::permission::{self, Overwrite, Role, Standing};
use crate::refusal::Trouble;
use crate::settings::snowflake;

/// How long a busy or unreachable Discord is put up with, for one question.
const PATIENCE: Duration = Duration::from_secs(20);

/// Application flags: the message content intent is granted, or switched on for a bot in few servers.
const MESSAGE_CONTENT_GRANTED: u64 = (1 << 18) | (1 << 19);

#[derive(Deserialize)]
struct Application {
    id: String,
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct Guild {
    id: String,
    name: String,
    #[serde(default)]
    owner_id: String,
    #[serde(default)]
    roles: Vec<Role>,
}

#[derive(Deserialize)]
struct ChannelRights {
    #[serde(flatten)]
    channel: Channel,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    permission_overwrites: Vec<Overwrite>,
}

#[derive(Deserialize)]
struct OwnMember {
    #[serde(default)]
    roles: Vec<String>,
}

/// The bot in one server.
struct Place {
    name: String,
    standing: Standing,
    may: u64,
}

impl Core {
    pub(crate) async fn check(&self) -> Result<Vec<Finding>, Finding> {
        let me = self.who_am_i().await?;
        *self.me.lock() = Some(me.clone());
        let mut found = vec![Finding {
            severity: Severity::Fine,
            what: format!("Discord: logged in as {} ({}).", me.name, me.user),
            hint: String::new(),
        }];
        let mut places = HashMap::new();
        for guild in &self.settings.guilds {
            match self.place(&me, guild).await {
                Ok(place) => {
                    places.insert(guild.clone(), place);
                }
                Err(finding) => found.push(finding),
            }
        }
        match self.settings.channels.is_empty() {
            true => found.extend(places.values().flat_map(rights_in_guild)),
            false => {
                for channel in &self.settings.channels {
                    found.extend(self.channel(&me, channel, &mut places).await);
                }
            }
        }
        if self.settings.guilds.is_empty() && self.settings.channels.is_empty() {
            found.extend(self.anywhere(&me).await);
        }
        Ok(found)
    }

    async fn who_am_i(&self) -> Result<Me, Finding> {
        let user: User = self
            .look(Route::UserMe)
            .await
            .map_err(unreachable_or_refused)?;
        let asked = self.look(Route::Oauth2ApplicationCurrent).await;
        let application: Application = asked.map_err(unreachable_or_refused)?;
        if self.settings.message_content && application.flags & MESSAGE_CONTENT_GRANTED == 0 {
            return Err(fatal(
                "The Discord application may not read messages: its message content intent is off.",
                MESSAGE_CONTENT_HINT,
            ));
        }
        let ids = snowflake(&user.id).zip(snowflake(&application.id));
        let (user_id, application) =
            ids.ok_or_else(|| fatal("Discord's answer about the bot makes no sense.", ""))?;
        Ok(Me {
            user: user_id,
            application,
            name: user.username,
        })
    }

    /// A server the settings name.
    async fn place(&self, me: &Me, guild: &str) -> Result<Place, Finding> {
        let Some(id) = snowflake(guild) else {
            return Err(warning(
                format!("{guild} is no Discord server."),
                String::new(),
            ));
        };
        let guild_id = id::GuildId::new(id);
        let told: Guild = match self.look(Route::Guild { guild_id }).await {
            Ok(told) => told,
            Err(Trouble::Refused(_)) => {
                let what = format!("The bot is not in the Discord server {guild}.");
                return Err(warning(what, invite(me)));
            }
            Err(trouble) => return Err(not_looked_at(&format!("server {guild}"), &trouble)),
        };
        let route = Route::GuildMember {
            guild_id,
            user_id: id::UserId::new(me.user),
        };
        let own: OwnMember = self.look(route).await.map_err(|trouble| {
            not_looked_at(&format!("bot's roles in server {guild}"), &trouble)
        })?;
        let standing = Standing {
            user: me.user.to_string(),
            guild: told.id,
            roles: own.roles,
            is_owner: snowflake(&told.owner_id) == Some(me.user),
        };
        let may = permission::in_guild(&standing, &told.roles);
        Ok(Place {
            name: told.name,
            standing,
            may,
        })
    }

    /// A channel the settings name.
    async fn channel(
        &self,
        me: &Me,
        channel: &str,
        places: &mut HashMap<String, Place>,
    ) -> Vec<Finding> {
        let Some(id) = snowflake(channel) else {
            return vec![warning(
                format!("{channel} is no Discord channel."),
                String::new(),
            )];
        };
        let told = match self.channel_rights(id).await {
            Ok(told) => told,
            Err(finding) => return vec![finding],
        };
        let Some(guild) = told.channel.guild_id.clone() else {
            let what = format!("Discord channel {channel} belongs to no server.");
            let hint = "Direct messages need no channel entry: name the person under users.";
            return vec![warning(what, hint.to_owned())];
        };
        let known = &self.settings.guilds;
        if !known.is_empty() && !known.contains(&guild) {
            let what = format!(
                "Discord channel {channel} is in server {guild}, which guilds does not name."
            );
            return vec![warning(
                what,
                "Add the server, or take the channel out.".to_owned(),
            )];
        }
        if !places.contains_key(&guild) {
            match self.place(me, &guild).await {
                Ok(place) => {
                    places.insert(guild.clone(), place);
                }
                Err(finding) => return vec![finding],
            }
        }
        let Some(place) = places.get(&guild) else {
            return Vec::new();
        };
        let label = format!("#{} ({channel})", told.name.as_deref().unwrap_or("?"));
        if !told.channel.has_messages() {
            return vec![warning(
                format!("{label} takes no messages: it is a category or a forum."),
                "Name a text channel.".to_owned(),
            )];
        }
        let overwrites = match self.overwrites(&told).await {
            Ok(overwrites) => overwrites,
            Err(finding) => return vec![finding],
        };
        let may = permission::in_channel(&place.standing, place.may, &overwrites);
        rights(&format!("{label} of {}", place.name), may)
    }

    async fn channel_rights(&self, channel: u64) -> Result<ChannelRights, Finding> {
        let channel_id = id::ChannelId::new(channel);
        self.look(Route::Channel { channel_id })
            .await
            .map_err(|trouble| match trouble {
                Trouble::Refused(_) => warning(
                    format!("Discord channel {channel} does not exist, or the bot cannot see it."),
                    "Check the id, and give the bot's role the right View Channel there."
                        .to_owned(),
                ),
                trouble => not_looked_at(&format!("channel {channel}"), &trouble),
            })
    }

    /// A thread has the rights of its channel.
    async fn overwrites(&self, told: &ChannelRights) -> Result<Vec<Overwrite>, Finding> {
        let parent = told.channel.parent_id.as_deref().and_then(snowflake);
        match parent.filter(|_| told.channel.is_thread()) {
            Some(parent) => Ok(self.channel_rights(parent).await?.permission_overwrites),
            None => Ok(told.permission_overwrites.clone()),
        }
    }

    /// With nothing named, being in any server is enough.
    async fn anywhere(&self, me: &Me) -> Option<Finding> {
        let guilds: Vec<Gone> = self.look(Route::UserMeGuilds).await.ok()?;
        let what = "The bot is in no Discord server yet; only direct messages reach it.";
        guilds
            .is_empty()
            .then(|| warning(what.to_owned(), invite(me)))
    }

    pub(crate) async fn look<T: DeserializeOwned>(&self, route: Route<'_>) -> Result<T, Trouble> {
        let request = Request::new(route, LightMethod::Get);
        self.rest
            .ask_patiently(request, Instant::now() + PATIENCE)
            .await
    }
}

fn unreachable_or_refused(trouble: Trouble) -> Finding {
    match trouble {
        Trouble::Refused(refusal) if refusal.status == 401 => bad_token(),
        Trouble::Refused(refusal) => fatal(&format!("Discord refused the bot: {refusal}."), ""),
        trouble => fatal(
            &format!("Discord cannot be reached: {trouble}."),
            "Check the network, and api_base if it is set.",
        ),
    }
}

fn rights_in_guild(place: &Place) -> Vec<Finding> {
    rights(&format!("the server {}", place.name), place.may)
}

fn rights(place: &str, may: u64) -> Vec<Finding> {
    let lacks = permission::missing(may).map(|(right, effect)| {
        warning(
            format!("In {place} the bot lacks the right {right}: {effect}."),
            format!(
                "Give {right} to the bot's role, in the settings of the channel or the server."
            ),
        )
    });
    lacks.collect()
}

/// Where an operator lets the bot into a server, with the rights it needs.
fn invite(me: &Me) -> String {
    format!(
        "Invite it with https://discord.com/oauth2/authorize?client_id={}&scope=bot+applications.commands&permissions={}",
        me.application,
        permission::all_needed()
    )
}

fn not_looked_at(which: &str, trouble: &Trouble) -> Finding {
    warning(
        format!("The {which} could not be looked at: {trouble}."),
        String::new(),
    )
}
