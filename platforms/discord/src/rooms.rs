//! Channels and threads as far as they are known: which server, which parent, and the newest message that was heard there.

use std::collections::HashMap;

use crate::event::Channel;
use crate::settings::snowflake;

/// One place messages are written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    /// `None` = a direct conversation.
    pub(crate) guild: Option<String>,
    /// Of a thread: the channel it hangs on.
    pub(crate) parent: Option<String>,
}

/// By the channel's id.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    known: HashMap<u64, Room>,
    /// The newest message heard; what is newer after a gap was missed.
    heard: HashMap<u64, u64>,
    /// The same, as it stood when the last gap ended.
    before: HashMap<u64, u64>,
}

/// A room in which something was missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) channel: u64,
    pub(crate) after: u64,
}

impl Rooms {
    pub(crate) fn room(&self, channel: u64) -> Option<&Room> {
        self.known.get(&channel)
    }

    pub(crate) fn learn(&mut self, channel: &Channel, guild: Option<&str>) {
        let Some(id) = snowflake(&channel.id).filter(|_| channel.has_messages()) else {
            return;
        };
        let guild = channel.guild_id.as_deref().or(guild).map(str::to_owned);
        let parent = channel.parent_id.clone();
        let room = Room {
            guild: guild.filter(|_| !channel.is_direct()),
            parent: parent.filter(|_| channel.is_thread()),
        };
        self.known.insert(id, room);
        // A room that opens now has no messages yet that are older than itself.
        self.heard.entry(id).or_insert(id);
    }

    /// A room as it stands when the first session begins: what is in it was said before our time.
    pub(crate) fn begin(&mut self, channel: &Channel, guild: &str) {
        if let (Some(id), Some(last)) = (snowflake(&channel.id), last(channel)) {
            self.heard.entry(id).or_insert(last.max(id));
        }
        self.learn(channel, Some(guild));
    }

    pub(crate) fn forget(&mut self, channel: u64) {
        self.known.remove(&channel);
        self.heard.remove(&channel);
    }

    pub(crate) fn forget_guild(&mut self, guild: &str) {
        let theirs = |room: &Room| room.guild.as_deref() == Some(guild);
        let gone: Vec<u64> = self
            .known
            .iter()
            .filter(|(_, room)| theirs(room))
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.forget(id);
        }
    }

    /// A message was heard.
    pub(crate) fn heard(&mut self, channel: u64, message: u64) {
        let newest = self.heard.entry(channel).or_insert(message);
        *newest = message.max(*newest);
    }

    /// A gap ended: what is heard from now on says nothing about what was missed.
    pub(crate) fn gap(&mut self) {
        self.before.clone_from(&self.heard);
    }

    /// Where to look for what was missed in a room that is told of after a gap; `None` = nothing was. `listed` rooms are
    /// looked through in any case, others if Discord names a newer message.
    pub(crate) fn missed(&self, channel: &Channel, listed: bool) -> Option<Missed> {
        let id = snowflake(&channel.id).filter(|_| channel.has_messages())?;
        let after = self.before.get(&id).copied();
        // A room that was not known: opened in the gap, or shown to the bot in it; then what is older than anything heard
        // before the gap was said before our time.
        let newest = || self.before.values().max().copied().unwrap_or(id).max(id);
        let after = after.unwrap_or_else(newest);
        let newer = last(channel).is_some_and(|last| last > after);
        (listed || newer).then_some(Missed { channel: id, after })
    }

    /// Direct conversations something was heard in; a new session tells nothing of them.
    pub(crate) fn directs(&self) -> Vec<Missed> {
        let directs = self.known.iter().filter(|(_, room)| room.guild.is_none());
        let missed = |(id, _): (&u64, &Room)| {
            Some(Missed {
                channel: *id,
                after: *self.before.get(id)?,
            })
        };
        directs.filter_map(missed).collect()
    }

    /// Whether it is a direct conversation; not known = no.
    pub(crate) fn is_direct(&self, channel: u64) -> bool {
        self.known
            .get(&channel)
            .is_some_and(|room| room.guild.is_none())
    }
}

fn last(channel: &Channel) -> Option<u64> {
    channel.last_message_id.as_deref().and_then(snowflake)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(id: u64, kind: u8, parent: Option<&str>, last: Option<u64>) -> Channel {
        Channel {
            id: id.to_string(),
            kind,
            guild_id: None,
            parent_id: parent.map(str::to_owned),
            last_message_id: last.map(|last| last.to_string()),
        }
    }

    #[test]
    fn only_what_is_newer_than_the_last_heard_was_missed() {
        let mut rooms = Rooms::default();
        rooms.begin(&channel(10, 0, Some("5"), Some(90)), "1");
        rooms.begin(&channel(11, 0, None, None), "1");
        rooms.gap();
        let missed = |rooms: &Rooms, id, kind, last| {
            let missed = rooms.missed(&channel(id, kind, None, Some(last)), false);
            missed.map(|missed| (missed.channel, missed.after))
        };
        assert_eq!(missed(&rooms, 10, 0, 90), None);
        assert_eq!(missed(&rooms, 10, 0, 95), Some((10, 90)));
        assert_eq!(missed(&rooms, 11, 0, 70), Some((11, 11)));
        assert_eq!(
            missed(&rooms, 91, 11, 99),
            Some((91, 91)),
            "opened in the gap"
        );
        assert_eq!(missed(&rooms, 12, 0, 80), None, "shown to us in the gap");
        assert_eq!(missed(&rooms, 12, 0, 99), Some((12, 90)));
        assert_eq!(missed(&rooms, 13, 4, 99), None, "a category");
        rooms.heard(10, 99);
        rooms.heard(10, 93);
        assert_eq!(
            missed(&rooms, 10, 0, 99),
            Some((10, 90)),
            "heard behind the gap"
        );
        rooms.gap();
        assert_eq!(missed(&rooms, 10, 0, 99), None);
        let listed = rooms.missed(&channel(10, 0, None, None), true);
        assert!(listed.is_some_and(|missed| missed.after == 99));
    }

    #[test]
    fn a_thread_has_its_parent_and_a_channel_not_its_category() {
        let mut rooms = Rooms::default();
        rooms.begin(&channel(10, 0, Some("5"), None), "1");
        rooms.learn(&channel(20, 11, Some("10"), None), Some("1"));
        rooms.learn(&channel(30, 1, None, None), None);
        let room = |guild: Option<&str>, parent: Option<&str>| Room {
            guild: guild.map(str::to_owned),
            parent: parent.map(str::to_owned),
        };
        assert_eq!(rooms.room(10), Some(&room(Some("1"), None)));
        assert_eq!(rooms.room(20), Some(&room(Some("1"), Some("10"))));
        assert!(rooms.is_direct(30) && !rooms.is_direct(10) && !rooms.is_direct(99));
        rooms.heard(30, 77);
        rooms.gap();
        let direct = Missed {
            channel: 30,
            after: 77,
        };
        assert_eq!(rooms.directs(), [direct]);
        rooms.forget_guild("1");
        assert!(rooms.room(20).is_none() && rooms.room(30).is_some());
    }
}
