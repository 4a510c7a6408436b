//! Messages of a gap, fetched afterwards: one request a room, at most 100 messages, oldest first. Commands and presses of a
//! gap cannot be fetched; the gap is counted instead.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::id;
use tokio::time::Instant;
use tracing::warn;

use crate::Core;
use crate::event::{Member, Message};
use crate::rooms::Missed;
use crate::settings::snowflake;

/// The most Discord gives at once.
const AT_MOST: usize = 100;

const PATIENCE: Duration = Duration::from_secs(30);

/// The messages a room got in a gap, as the gateway would have told them.
pub(crate) async fn back_fill(core: &Core, missed: &Missed) -> Vec<Message> {
    let route = Route::ChannelMessages {
        channel_id: id::ChannelId::new(missed.channel),
    };
    let params = vec![
        ("after", missed.after.to_string()),
        ("limit", AT_MOST.to_string()),
    ];
    let request = Request::new(route, LightMethod::Get).params(Some(params));
    let until = Instant::now() + PATIENCE;
    let listed: Vec<Value> = match core.rest.ask_patiently(request, until).await {
        Ok(listed) => listed,
        Err(trouble) => {
            warn!(channel = missed.channel, %trouble, "messages of a gap could not be fetched");
            return Vec::new();
        }
    };
    if listed.len() >= AT_MOST {
        warn!(
            channel = missed.channel,
            "more messages than {AT_MOST} came in a gap; the rest is lost"
        );
    }
    let guild = core
        .rooms
        .lock()
        .room(missed.channel)
        .and_then(|room| room.guild.clone());
    let mut people = HashMap::new();
    let mut found = Vec::new();
    // The answer is newest first.
    for one in listed.into_iter().rev() {
        let Ok(mut message) = serde_json::from_value::<Message>(one) else {
            core.pulse.unreadable();
            continue;
        };
        message.guild_id.clone_from(&guild);
        if let Some(guild) = guild.as_deref().and_then(snowflake) {
            message.member = core.member(guild, &message, &mut people).await;
        }
        found.push(message);
    }
    found
}

impl Core {
    /// Who an author is in the server: REST leaves that out of messages, and their roles may be what lets them speak.
    async fn member(
        &self,
        guild: u64,
        message: &Message,
        people: &mut HashMap<u64, Option<Profile>>,
    ) -> Option<Member> {
        let user = snowflake(&message.author.id)?;
        if message.author.bot || message.webhook_id.is_some() {
            return None;
        }
        if let Some(known) = people.get(&user) {
            return known.as_ref().map(Profile::member);
        }
        let route = Route::GuildMember {
            guild_id: id::GuildId::new(guild),
            user_id: id::UserId::new(user),
        };
        let request = Request::new(route, LightMethod::Get);
        let until = Instant::now() + Duration::from_secs(5);
        let asked = self.rest.ask_patiently::<Member>(request, until).await;
        let profile = asked.ok().map(|member| Profile {
            nick: member.nick,
            roles: member.roles,
        });
        let member = profile.as_ref().map(Profile::member);
        people.insert(user, profile);
        member
    }
}

/// What is used of a member.
struct Profile {
    nick: Option<String>,
    roles: Vec<String>,
}

impl Profile {
    fn member(&self) -> Member {
        Member {
            user: None,
            nick: self.nick.clone(),
            roles: self.roles.clone(),
        }
    }
}
