//! From the gateway's events to what the host hears.
//!
//! Commands and presses are acknowledged at once, each in a task of its own, and handed on when Discord has taken the
//! acknowledgement: nothing of ours can make a person read "the application did not respond". Messages go through one queue,
//! in the order they came, together with those of a gap.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use platforms::adapter::{Finding, Heard};
use secrecy::ExposeSecret;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::id;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::Core;
use crate::acknowledge::acknowledge;
use crate::back_fill::back_fill;
use crate::event::{Channel, Event, GuildCreate, Interaction, Message, Token};
use crate::finding::fatal;
use crate::gateway::{self, Addresses, Identity};
use crate::inbound::{self, Me};
use crate::look_up::gateway_address;
use crate::rooms::{Missed, Room};
use crate::settings::{self, snowflake};

/// What messages that wait to be handed on get when listening ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES; and the privileged MESSAGE_CONTENT.
const INTENTS: u64 = (1 << 0) | (1 << 9) | (1 << 12);
const MESSAGE_CONTENT: u64 = 1 << 15;

/// What is done in order.
enum Job {
    Message(Box<Message>),
    BackFill(Missed),
}

pub(crate) async fn listen(
    core: Arc<Core>,
    heard: mpsc::Sender<Heard>,
    stop: CancellationToken,
) -> Result<(), Finding> {
    let Some(me) = core.me() else {
        return Err(fatal("Discord was not checked before listening.", ""));
    };
    let main = tokio::select! {
        main = gateway_address(&core) => main?,
        () = stop.cancelled() => return Ok(()),
    };
    let (jobs, queue) = mpsc::unbounded_channel();
    let mut in_order = JoinSet::new();
    in_order.spawn(translate(
        Arc::clone(&core),
        me.clone(),
        queue,
        heard.clone(),
    ));
    let mut ears = Ears {
        core: Arc::clone(&core),
        me,
        jobs,
        heard,
        acks: JoinSet::new(),
        guilds: HashSet::new(),
        sessions: 0,
    };
    let mut intents = INTENTS;
    if core.settings.message_content {
        intents |= MESSAGE_CONTENT;
    }
    let identity = Identity {
        token: Token(core.settings.token.expose_secret().to_owned()),
        intents,
    };
    let may_resume_at = |url: &str| {
        core.settings.gateway_url.is_none() && settings::gateway(url, &core.settings).is_ok()
    };
    let addresses = Addresses {
        main,
        may_resume_at: &may_resume_at,
    };
    let mut tell = |event| ears.hear(event);
    let end = gateway::run(&addresses, &identity, &core.pulse, &stop, &mut tell).await;
    let Ears { jobs, mut acks, .. } = ears;
    drop(jobs);
    let rest = async {
        while acks.join_next().await.is_some() {}
        while in_order.join_next().await.is_some() {}
    };
    // What the host does not take any more is lost with it.
    let _ = timeout(LAST_WORDS, rest).await;
    end
}

/// Hears every event once, in order, and never waits.
struct Ears {
    core: Arc<Core>,
    me: Me,
    jobs: mpsc::UnboundedSender<Job>,
    heard: mpsc::Sender<Heard>,
    /// Acknowledgements under way.
    acks: JoinSet<()>,
    /// Servers whose rooms are known.
    guilds: HashSet<String>,
    sessions: u64,
}

impl Ears {
    fn hear(&mut self, event: Event) {
        while self.acks.try_join_next().is_some() {}
        match event {
            Event::Ready(_) => self.ready(),
            Event::Resumed => {}
            Event::Guild(guild) => self.guild(&guild),
            Event::GuildGone(gone) => {
                if !gone.unavailable {
                    self.guilds.remove(&gone.id);
                    self.core.rooms.lock().forget_guild(&gone.id);
                }
            }
            Event::Channel(channel) => self.core.rooms.lock().learn(&channel, None),
            Event::ChannelGone(gone) => {
                if let Some(id) = snowflake(&gone.id) {
                    self.core.rooms.lock().forget(id);
                }
            }
            Event::Threads(list) => {
                let mut rooms = self.core.rooms.lock();
                for thread in &list.threads {
                    rooms.learn(thread, Some(&list.guild_id));
                }
            }
            Event::Message(message) => self.message(message),
            Event::Interaction(asked) => self.interaction(asked),
        }
    }

    fn ready(&mut self) {
        self.sessions += 1;
        if self.sessions == 1 {
            return;
        }
        warn!("Discord began a new session: commands and presses since the old one ended are lost");
        let directs = {
            let mut rooms = self.core.rooms.lock();
            rooms.gap();
            rooms.directs()
        };
        for missed in directs {
            self.job(Job::BackFill(missed));
        }
    }

    fn guild(&mut self, guild: &GuildCreate) {
        let is_new = self.guilds.insert(guild.id.clone());
        let mut missed = Vec::new();
        {
            let mut rooms = self.core.rooms.lock();
            for channel in guild.channels.iter().chain(&guild.threads) {
                if is_new {
                    rooms.begin(channel, &guild.id);
                } else {
                    if let Some(listed) = self.served(channel, &guild.id) {
                        missed.extend(rooms.missed(channel, listed));
                    }
                    rooms.learn(channel, Some(&guild.id));
                }
            }
        }
        for missed in missed {
            self.job(Job::BackFill(missed));
        }
    }

    /// Whether a room is served, and if so whether the settings name it or its channel.
    fn served(&self, channel: &Channel, guild: &str) -> Option<bool> {
        let settings = &self.core.settings;
        let named = |id: &String| {
            channel.id == *id || (channel.is_thread() && channel.parent_id.as_ref() == Some(id))
        };
        let guild_fits = settings.guilds.is_empty() || settings.guilds.iter().any(|id| id == guild);
        let listed = settings.channels.iter().any(named);
        (guild_fits && (listed || settings.channels.is_empty())).then_some(listed)
    }

    fn message(&mut self, message: Box<Message>) {
        if let (Some(channel), Some(id)) = (snowflake(&message.channel_id), snowflake(&message.id))
        {
            self.core.rooms.lock().heard(channel, id);
        }
        self.job(Job::Message(message));
    }

    fn interaction(&mut self, asked: Box<Interaction>) {
        if !self.core.first_sight(&asked.id) {
            return;
        }
        if let Some(channel) = &asked.channel {
            let mut rooms = self.core.rooms.lock();
            rooms.learn(channel, asked.guild_id.as_deref());
        }
        let (core, me) = (Arc::clone(&self.core), self.me.clone());
        self.acks
            .spawn(acknowledge(core, me, asked, self.heard.clone()));
    }

    fn job(&self, job: Job) {
        // It ends only with the listening itself.
        let _ = self.jobs.send(job);
    }
}

/// Hands messages on, in order.
async fn translate(
    core: Arc<Core>,
    me: Me,
    mut queue: mpsc::UnboundedReceiver<Job>,
    heard: mpsc::Sender<Heard>,
) {
    while let Some(job) = queue.recv().await {
        let still_heard = match job {
            Job::Message(message) => hand_on(&core, &me, &message, &heard).await.is_ok(),
            Job::BackFill(missed) => {
                let messages = back_fill(&core, &missed).await;
                info!(
                    channel = missed.channel,
                    count = messages.len(),
                    "looked for messages of the gap"
                );
                fill_in(&core, &me, &messages, &heard).await.is_ok()
            }
        };
        if !still_heard {
            return;
        }
    }
}

/// The host has gone.
struct Gone;

async fn fill_in(
    core: &Core,
    me: &Me,
    messages: &[Message],
    heard: &mpsc::Sender<Heard>,
) -> Result<(), Gone> {
    for message in messages {
        if hand_on(core, me, message, heard).await? {
            core.pulse.back_filled();
        }
    }
    Ok(())
}

/// Whether it was new and something was said.
async fn hand_on(
    core: &Core,
    me: &Me,
    message: &Message,
    heard: &mpsc::Sender<Heard>,
) -> Result<bool, Gone> {
    if !core.first_sight(&message.id) {
        return Ok(false);
    }
    let room = core.room_of(message).await;
    let parent = room.and_then(|room| room.parent);
    let Some(told) = inbound::message(message, me, parent.as_deref()) else {
        return Ok(false);
    };
    heard.send(told).await.map_err(|_| Gone)?;
    Ok(true)
}

impl Core {
    fn first_sight(&self, id: &str) -> bool {
        self.seen.lock().first_sight(&[id], Instant::now())
    }

    /// What is known of the room a message was written in; asked for once if nothing is.
    async fn room_of(&self, message: &Message) -> Option<Room> {
        let channel = snowflake(&message.channel_id)?;
        if let Some(known) = self.rooms.lock().room(channel) {
            return Some(known.clone());
        }
        let told = match message.guild_id {
            None => Channel::direct(&message.channel_id),
            Some(_) => self.ask_for_channel(channel).await?,
        };
        let mut rooms = self.rooms.lock();
        rooms.learn(&told, message.guild_id.as_deref());
        rooms.room(channel).cloned()
    }

    async fn ask_for_channel(&self, channel: u64) -> Option<Channel> {
        let route = Route::Channel {
            channel_id: id::ChannelId::new(channel),
        };
        let request = Request::new(route, LightMethod::Get);
        let until = Instant::now() + Duration::from_secs(5);
        let told = self.rest.ask_patiently(request, until).await;
        // Taken for a channel without a parent: a thread is then served only if it is named itself.
        told.inspect_err(|trouble| warn!(channel, %trouble, "nothing is known of a channel"))
            .ok()
    }
}
