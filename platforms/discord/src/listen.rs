//! From the gateway's events to what the host hears.
//!
//! Commands and presses are acknowledged at once, each in a task of its own, and handed on when Discord has taken the
//! acknowledgement: nothing of ours can make a person read "the application did not respond". Messages go through one queue,
//! in the order they came, together with those of a gap.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::message::Audience;
use platforms::adapter::{Finding, Heard, Severity};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::id;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::Core;
use crate::back_fill::back_fill;
use crate::body;
use crate::event::{Channel, Event, GuildCreate, Interaction, Message};
use crate::gateway::{self, Addresses, Identity};
use crate::inbound::{self, Me};
use crate::refusal::Trouble;
use crate::rooms::{Missed, Room};
use crate::settings::{self, snowflake};

/// Discord waits 3 s for an acknowledgement; what is left of that when the event has arrived, with room to spare.
const ACK_WITHIN: Duration = Duration::from_millis(2_700);

/// One try of an acknowledgement.
const ACK_TRY: Duration = Duration::from_millis(1_200);

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
        token: core.settings.token.expose_secret().to_owned(),
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

#[derive(Deserialize)]
struct GatewayBot {
    url: String,
    #[serde(default)]
    shards: Option<u64>,
}

/// Where the gateway is. Looked up by ourselves, and never guessed: with a server of the settings' own a failed look-up is
/// final, with Discord it is tried again until it succeeds.
async fn gateway_address(core: &Core) -> Result<String, Finding> {
    if let Some(url) = &core.settings.gateway_url {
        return Ok(url.clone());
    }
    let mut pause = Duration::from_secs(1);
    loop {
        let request = Request::new(Route::GatewayBot, LightMethod::Get);
        let why = match core.rest.ask::<GatewayBot>(request).await {
            Ok(answer) => {
                if answer.shards.is_some_and(|shards| shards > 1) {
                    warn!("Discord asks for several connections; the bot is in very many servers");
                }
                let usable = settings::gateway(&answer.url, &core.settings);
                return usable.map(|_| answer.url).map_err(|error| {
                    fatal(
                        &error.to_string(),
                        "Set gateway_url, or an api_base whose gateway is in reach.",
                    )
                });
            }
            Err(Trouble::Refused(refusal)) if refusal.status == 401 => return Err(bad_token()),
            Err(trouble) => trouble,
        };
        if core.settings.has_own_base() {
            return Err(fatal(
                &format!("The gateway could not be looked up: {why}."),
                "Check api_base, or set gateway_url.",
            ));
        }
        warn!(%why, "the address of Discord's gateway could not be looked up");
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
}

pub(crate) fn fatal(what: &str, hint: &str) -> Finding {
    Finding {
        severity: Severity::Fatal,
        what: what.to_owned(),
        hint: hint.to_owned(),
    }
}

pub(crate) fn bad_token() -> Finding {
    fatal(
        "Discord does not know the token.",
        "Reset it on the Bot page of the application in the developer portal and put the new one where token_env or token_file points.",
    )
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

/// Acknowledges a command or a press and hands it on; one that cannot be acknowledged any more is lost, and counted.
async fn acknowledge(core: Arc<Core>, me: Me, asked: Box<Interaction>, heard: mpsc::Sender<Heard>) {
    let began = Instant::now();
    let parent = snowflake(&asked.channel_id)
        .and_then(|channel| core.rooms.lock().room(channel)?.parent.clone());
    let prefix = &core.settings.command_prefix;
    let Some(told) = inbound::interaction(&asked, &me, parent.as_deref(), prefix) else {
        return; // an autocompletion, a form: nothing of ours asks for those
    };
    let private = match asked.kind {
        Interaction::COMMAND => {
            let name = asked.data.as_ref().map_or("", |data| &data.name);
            let name = inbound::command_name(name, prefix);
            Some(core.audience(name) == Audience::Asker)
        }
        _ => None,
    };
    match first_answer(&core, &asked, private).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(trouble) => {
            core.pulse.gap();
            warn!(id = %asked.id, %trouble, "a command or press could not be acknowledged and is lost");
            return;
        }
    }
    if let Some(id) = snowflake(&asked.id) {
        let token = asked.token.clone();
        core.asked.lock().note(id, token, private, began);
    }
    // The host has gone; nothing can be done with it.
    let _ = heard.send(told).await;
}

/// Whether it is ours to answer now; `false` = somebody else has.
async fn first_answer(
    core: &Core,
    asked: &Interaction,
    private: Option<bool>,
) -> Result<bool, Trouble> {
    let until = Instant::now() + ACK_WITHIN;
    let shown = private.map_or_else(body::deferred_update, body::deferred_answer);
    let Some(id) = snowflake(&asked.id) else {
        return Ok(false);
    };
    let route = Route::InteractionResponse {
        interaction_id: id::InteractionId::new(id),
        token: &asked.token,
    };
    let request = body::request(route, LightMethod::Post, &shown, None);
    let mut tried_before = false;
    loop {
        let tried = timeout(ACK_TRY, core.rest.once(request.clone())).await;
        let trouble = match tried {
            Ok(Ok(_)) => return Ok(true),
            // Already acknowledged: by a try of ours whose answer was lost, or by another program with this token.
            Ok(Err(Trouble::Refused(refusal))) if refusal.code == 40_060 => {
                return Ok(tried_before);
            }
            Ok(Err(Trouble::Refused(refusal))) => return Err(Trouble::Refused(refusal)),
            Ok(Err(trouble)) => trouble,
            Err(_) => Trouble::Uncertain("no answer in time".to_owned()),
        };
        tried_before |= matches!(trouble, Trouble::Uncertain(_));
        let wait = match &trouble {
            Trouble::Limited { after, .. } => after.unwrap_or(ACK_WITHIN),
            _ => Duration::from_millis(100),
        };
        if Instant::now() + wait >= until {
            return Err(trouble);
        }
        sleep(wait).await;
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
