//! From what Discord tells to what the host hears. Pure: what is known of channels comes in.

use gateway_core::ids::InboundId;
use platforms::adapter::{Content, File, Heard, Speaker, SpeakerKind, Spot};

use crate::address::{Address, CameBy};
use crate::event::{Attachment, Interaction, Member, Message, User};
use crate::settings::snowflake;

/// Kinds of messages that people write; every other one is Discord's own ("joined", "pinned", "started a thread").
const WRITTEN: [u8; 2] = [
    0,  // DEFAULT
    19, // REPLY
];

/// Who the bot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Me {
    /// The account's id.
    pub(crate) user: u64,
    pub(crate) application: u64,
    pub(crate) name: String,
}

/// Translates a message; `None` = nothing was said, or its ids make no sense. `parent` = the channel a thread hangs on.
pub(crate) fn message(told: &Message, me: &Me, parent: Option<&str>) -> Option<Heard> {
    let channel = snowflake(&told.channel_id)?;
    snowflake(&told.id)?;
    let kind = speaker_kind(told, me);
    if !WRITTEN.contains(&told.kind) && kind != SpeakerKind::Ourselves {
        return None;
    }
    let direct = told.guild_id.is_none();
    let (text, named) = without_mention(&told.content, me.user);
    let files: Vec<File> = told.attachments.iter().map(file).collect();
    let called = direct || named || mentions(told, me) || answers(told, me);
    if text.is_empty() && files.is_empty() && !called {
        return None; // a sticker, a poll, or a text that is hidden without the privileged intent
    }
    let address = Address {
        channel,
        direct,
        came_by: CameBy::Message,
    };
    Some(Heard {
        id: InboundId::new(&told.id),
        speaker: speaker(&told.author, told.member.as_ref(), kind),
        spot: spot(told.guild_id.as_deref(), &told.channel_id, parent),
        called,
        conversation: told.channel_id.clone(),
        address: address.to_string(),
        content: Content::Text { text, files },
    })
}

/// Translates a command or a press. `prefix` = what stands before the names of our commands.
pub(crate) fn interaction(
    told: &Interaction,
    me: &Me,
    parent: Option<&str>,
    prefix: &str,
) -> Option<Heard> {
    let (id, channel) = (snowflake(&told.id)?, snowflake(&told.channel_id)?);
    let member = told.member.as_ref();
    let user = member
        .and_then(|member| member.user.as_ref())
        .or(told.user.as_ref())?;
    let data = told.data.as_ref()?;
    let (came_by, content) = match told.kind {
        Interaction::COMMAND => (
            CameBy::Command { interaction: id },
            Content::Command {
                name: command_name(&data.name, prefix).to_owned(),
                args: argument(told),
            },
        ),
        Interaction::COMPONENT => {
            let message = told.message.as_ref().and_then(|on| snowflake(&on.id))?;
            let came_by = CameBy::Press {
                interaction: id,
                message,
            };
            let custom_id = data.custom_id.clone();
            (came_by, Content::Press { custom_id })
        }
        _ => return None,
    };
    let direct = told.guild_id.is_none();
    let kind = match snowflake(&user.id) == Some(me.user) {
        true => SpeakerKind::Ourselves,
        false if user.bot => SpeakerKind::Bot,
        false => SpeakerKind::Person,
    };
    let address = Address {
        channel,
        direct,
        came_by,
    };
    Some(Heard {
        id: InboundId::new(&told.id),
        speaker: speaker(user, member, kind),
        spot: spot(told.guild_id.as_deref(), &told.channel_id, parent),
        called: true,
        conversation: told.channel_id.clone(),
        address: address.to_string(),
        content,
    })
}

/// The table's name of a command that is registered with a prefix.
pub(crate) fn command_name<'a>(name: &'a str, prefix: &str) -> &'a str {
    name.strip_prefix(prefix).unwrap_or(name)
}

fn argument(told: &Interaction) -> String {
    let options = told.data.iter().flat_map(|data| &data.options);
    let mut ours = options.filter(|option| option.name == commands::surface::discord::ARGUMENT);
    let value = ours.next().and_then(|option| option.value.as_str());
    value.unwrap_or_default().to_owned()
}

fn speaker_kind(told: &Message, me: &Me) -> SpeakerKind {
    if snowflake(&told.author.id) == Some(me.user) {
        SpeakerKind::Ourselves
    } else if told.author.bot || told.webhook_id.is_some() {
        SpeakerKind::Bot
    } else {
        SpeakerKind::Person
    }
}

fn speaker(user: &User, member: Option<&Member>, kind: SpeakerKind) -> Speaker {
    let nick = member.and_then(|member| member.nick.as_deref());
    let shown = nick.or(user.global_name.as_deref());
    Speaker {
        id: user.id.clone(),
        name: shown.unwrap_or(&user.username).to_owned(),
        roles: member
            .map(|member| member.roles.clone())
            .unwrap_or_default(),
        kind,
    }
}

fn spot(guild: Option<&str>, channel: &str, parent: Option<&str>) -> Spot {
    match guild {
        None => Spot::Direct {
            channel: channel.to_owned(),
        },
        Some(guild) => Spot::Channel {
            guild: Some(guild.to_owned()),
            channel: channel.to_owned(),
            parent: parent.map(str::to_owned),
        },
    }
}

fn mentions(told: &Message, me: &Me) -> bool {
    let ours = |id: &str| snowflake(id) == Some(me.user);
    told.mentions.iter().any(|mention| ours(&mention.id))
        || marks(me.user)
            .iter()
            .any(|mark| told.content.contains(mark.as_str()))
}

/// Whether it is a reply to a message of the bot.
fn answers(told: &Message, me: &Me) -> bool {
    let to = told.referenced_message.as_ref();
    to.is_some_and(|to| snowflake(&to.author.id) == Some(me.user))
}

/// The forms of a mention in a text.
fn marks(user: u64) -> [String; 2] {
    [format!("<@{user}>"), format!("<@!{user}>")]
}

/// The text without the mention it began with, and whether it did.
fn without_mention(text: &str, user: u64) -> (String, bool) {
    let trimmed = text.trim();
    let marks = marks(user);
    let rest = marks
        .iter()
        .find_map(|mark| trimmed.strip_prefix(mark.as_str()));
    match rest {
        // "@bot, hello" and "@bot: hello" as people write to each other.
        Some(rest) => {
            let rest = rest.strip_prefix([',', ':']).unwrap_or(rest);
            (rest.trim_start().to_owned(), true)
        }
        None => (trimmed.to_owned(), false),
    }
}

fn file(told: &Attachment) -> File {
    File {
        name: told.filename.clone(),
        size: told.size,
        media_type: told.content_type.clone(),
        source: told.url.clone(),
    }
}

#[cfg(test)]
mod tests;
