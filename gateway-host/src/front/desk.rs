//! What one gateway does with what its bots hear: who is let in is decided at once; what is let in waits in its
//! conversation's queue, so that a slow file holds up nobody else and the order of one conversation stays.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use gateway_core::access::{AccessRules, STRANGER_LINE, Silence, Strangers};
use gateway_core::ids::{InboundId, ProfileId, SessionKey};
use gateway_core::message::{Audience, Content, Inbound, Origin, ReplyTarget, Sender, Standing};
use parking_lot::{Mutex, RwLock};
use platforms::adapter::{self, Heard, SpeakerKind};
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

use super::door::{self, BotRuns, Verdict};
use super::pairing::{Outcome, Pairings};
use super::words::{self, Meant};
use super::{Bot, files, switchboard};
use crate::config::ChatKind;
use crate::store::{Lane, PairedOperator};
use crate::{Gateway, delivery, intake};

/// The most that waits in one conversation's queue for its files and for what came before it.
const QUEUE_MAX: usize = 100;

/// What somebody is told who gives a command where nobody is answered.
const ELSEWHERE_LINE: &str = "This gateway is not set up to answer here.";

/// The desk of every bot of one gateway.
pub(super) struct Desk {
    gateway: Arc<Gateway>,
    bots: Vec<Seat>,
    /// As configured, with the paired operators.
    rules: RwLock<BTreeMap<(ChatKind, ProfileId), AccessRules>>,
    strangers: Mutex<Strangers>,
    pub(super) pairings: Pairings,
    queues: Mutex<HashMap<SessionKey, VecDeque<Item>>>,
    tasks: TaskTracker,
}

struct Seat {
    bot: Bot,
    runs: Mutex<BotRuns>,
    prefix: String,
    /// Commands that plugins bring to any of the profiles.
    brought: Vec<&'static str>,
}

/// Something that was let in.
struct Item {
    bot: Bot,
    inbound: Inbound,
    /// The address as the adapter made it.
    address: String,
    files: Vec<adapter::File>,
}

impl Desk {
    /// A desk for these bots. Paired operators count where the configuration names none.
    pub(super) fn new(gateway: Arc<Gateway>, bots: &[Bot], paired: &[PairedOperator]) -> Self {
        let settings = &gateway.effects().settings;
        let mut rules = BTreeMap::new();
        let mut seats = Vec::new();
        for bot in bots {
            let mut prefix = String::new();
            for profile in &bot.profiles {
                let settings = settings.profile(profile);
                let Some(chat) = settings.chat.get(&bot.kind) else {
                    continue;
                };
                prefix.clone_from(&chat.command_prefix);
                let mut access = chat.access.clone();
                if access.operators.is_empty() {
                    let theirs = paired
                        .iter()
                        .filter(|one| one.profile == *profile && one.platform == bot.kind.name());
                    access
                        .operators
                        .extend(theirs.map(|one| one.person.clone()));
                }
                rules.insert((bot.kind, profile.clone()), access);
            }
            let plugins = &gateway.effects().plugins;
            let profiles = bot.profiles.iter();
            let brought = profiles.flat_map(|profile| plugins.commands(profile));
            seats.push(Seat {
                brought: brought.map(|one| one.spec.name).collect(),
                bot: bot.clone(),
                runs: Mutex::default(),
                prefix,
            });
        }
        Self {
            gateway,
            bots: seats,
            rules: RwLock::new(rules),
            strangers: Mutex::default(),
            pairings: Pairings::default(),
            queues: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Profiles and platforms without any operator.
    pub(super) fn without_operator(&self) -> Vec<(ChatKind, ProfileId)> {
        let rules = self.rules.read();
        let without = rules.iter().filter(|(_, rules)| rules.operators.is_empty());
        without.map(|(at, _)| at.clone()).collect()
    }

    /// Takes one thing that the bot of this number heard. Returns at once.
    pub(super) fn hear(self: &Arc<Self>, number: usize, heard: Heard) {
        let Some(seat) = self.bots.get(number) else {
            return;
        };
        let kind = seat.bot.kind;
        let meant = words::read(&heard.content, &seat.prefix, &seat.brought);
        let (verdict, here) = {
            let rules = self.rules.read();
            let profiles = || {
                let all = seat.bot.profiles.iter();
                all.filter_map(|id| Some((id, rules.get(&(kind, id.clone()))?)))
            };
            let mut runs = seat.runs.lock();
            let verdict = door::judge(profiles(), &heard, runs.of(&heard.conversation));
            runs.note(&heard, matches!(verdict, Verdict::Admitted(..)));
            (verdict, door::here(profiles(), &heard))
        };
        if let Meant::Pair(code) = &meant
            && heard.called
            && heard.speaker.kind == SpeakerKind::Person
        {
            let now = self.gateway.effects().now();
            match self.pairings.redeem(kind, &here, code, now) {
                Outcome::NoneOffered if !matches!(verdict, Verdict::Admitted(..)) => {}
                outcome => return self.pair(seat, &here, heard, outcome),
            }
        }
        match verdict {
            Verdict::Admitted(profile, standing) => {
                self.admit(seat, profile, standing, heard, meant);
            }
            Verdict::Stranger(profile) => self.turn_away(&profile, seat, &heard, STRANGER_LINE),
            Verdict::Ignored(Silence::Elsewhere) => {
                if let (Some(profile), adapter::Content::Command { .. }) =
                    (seat.bot.profiles.first(), &heard.content)
                {
                    self.turn_away(profile, seat, &heard, ELSEWHERE_LINE);
                }
            }
            Verdict::Ignored(why) => debug!(?why, id = %heard.id, "not for us"),
        }
    }

    fn admit(
        self: &Arc<Self>,
        seat: &Seat,
        profile: ProfileId,
        standing: Standing,
        heard: Heard,
        meant: Meant,
    ) {
        let kind = seat.bot.kind;
        let content = match meant {
            Meant::Text(text) => Content::Text(text),
            Meant::Command { name, args } => Content::Command { name, args },
            Meant::Press { custom_id } => Content::Press { custom_id },
            Meant::Pair(_) => return, // it named nobody: not for us
        };
        let session = format!("agent:{profile}:{}:{}", kind.name(), heard.conversation);
        let files = match heard.content {
            adapter::Content::Text { files, .. } => files,
            _ => Vec::new(),
        };
        let inbound = Inbound {
            // Two bots in one channel hear the same message, each for its own profile.
            id: InboundId::new(format!("{profile}/{}", heard.id)),
            session: SessionKey::new(session),
            sender: Sender {
                id: heard.speaker.id,
                name: heard.speaker.name,
                standing,
            },
            origin: match heard.speaker.kind {
                SpeakerKind::Person => Origin::Human,
                SpeakerKind::Bot | SpeakerKind::Ourselves => Origin::Synthetic,
            },
            target: target(kind, &profile, &heard.address),
            profile,
            received_at: self.gateway.effects().now(),
            content,
        };
        let item = Item {
            bot: seat.bot.clone(),
            inbound,
            address: heard.address,
            files,
        };
        let stops =
            matches!(&item.inbound.content, Content::Command { name, .. } if name == "stop");
        if stops {
            // It must not wait behind a file of the same conversation.
            let desk = Arc::clone(self);
            self.tasks.spawn(async move { desk.take(item).await });
        } else {
            self.enqueue(item);
        }
    }

    fn enqueue(self: &Arc<Self>, item: Item) {
        let session = item.inbound.session.clone();
        let mut queues = self.queues.lock();
        let refused = match queues.get_mut(&session) {
            Some(queue) if queue.len() >= QUEUE_MAX => item,
            Some(queue) => return queue.push_back(item),
            None => {
                queues.insert(session.clone(), VecDeque::from([item]));
                let desk = Arc::clone(self);
                self.tasks.spawn(async move { desk.work(session).await });
                return;
            }
        };
        drop(queues);
        warn!(%session, "too much waits in one conversation");
        let say = "Too many messages wait here; this one was not taken.";
        self.say(refused.inbound.target, say, Audience::Everyone);
    }

    async fn work(self: Arc<Self>, session: SessionKey) {
        loop {
            let item = {
                let mut queues = self.queues.lock();
                let next = queues.get_mut(&session).and_then(VecDeque::pop_front);
                let Some(item) = next else {
                    queues.remove(&session);
                    return;
                };
                item
            };
            // A panic is a fault of ours: the conversation goes on.
            let taking = AssertUnwindSafe(Box::pin(self.take(item))).catch_unwind();
            if taking.await.is_err() {
                error!(%session, "something that was heard could not be taken");
            }
        }
    }

    async fn take(&self, item: Item) {
        let Item {
            bot,
            mut inbound,
            address,
            files,
        } = item;
        let effects = self.gateway.effects();
        let lane = Lane {
            profile: inbound.profile.clone(),
            session: inbound.session.clone(),
        };
        if let Content::Text(text) = &mut inbound.content {
            let platform = inbound.target.platform.as_str();
            // A fault of the store is said when the message is taken.
            if let Ok(true) = effects.store.was_seen(platform, &inbound.id).await {
                return debug!(id = %inbound.id, "delivered again; answered once is enough");
            }
            if text.trim().is_empty() && files.is_empty() {
                return;
            }
            bot.mouth.working(&address);
            if !files.is_empty() {
                let text = std::mem::take(text);
                let with = self.with_files(&bot, &inbound, text, &files).await;
                inbound.content = Content::Text(with);
            }
            self.gateway.receive(inbound).await;
            if self.gateway.sessions().busy(&lane).is_none() {
                bot.mouth.rests(&address);
            }
            return;
        }
        self.gateway.receive(inbound).await;
    }

    /// The words with what was attached to them.
    async fn with_files(
        &self,
        bot: &Bot,
        inbound: &Inbound,
        text: String,
        attached: &[adapter::File],
    ) -> String {
        let effects = self.gateway.effects();
        let home = effects.profile(&inbound.profile).home.clone();
        let folder = files::folder(&home, &inbound.session);
        let level = intake::permissions(inbound, effects);
        let taken = files::take(&*bot.adapter, attached, &folder, level).await;
        if !taken.refused.is_empty() {
            delivery::aside(effects, &inbound.target, &taken.refused.join("\n")).await;
        }
        let whole = format!("{text}{}", taken.note);
        whole.trim_start_matches('\n').to_owned()
    }

    /// A line for somebody who is not answered. A command that waits for its answer always gets it, to its sender alone;
    /// everything else once a day.
    fn turn_away(
        self: &Arc<Self>,
        profile: &ProfileId,
        seat: &Seat,
        heard: &Heard,
        line: &'static str,
    ) {
        let kind = seat.bot.kind;
        let is_command = matches!(heard.content, adapter::Content::Command { .. });
        let waits = is_command && kind == ChatKind::Discord;
        let person = format!("{} {}", kind.name(), heard.speaker.id);
        let now = self.gateway.effects().now();
        let may_tell = self.strangers.lock().may_tell(&person, now);
        if !may_tell && !waits {
            return;
        }
        let audience = match heard.content {
            adapter::Content::Text { .. } if kind == ChatKind::Discord => Audience::Everyone,
            _ => Audience::Asker,
        };
        self.say(target(kind, profile, &heard.address), line, audience);
    }

    fn pair(self: &Arc<Self>, seat: &Seat, here: &[ProfileId], heard: Heard, outcome: Outcome) {
        let kind = seat.bot.kind;
        let Some(first) = here.first() else {
            return;
        };
        let audience = match (kind, &heard.content) {
            (ChatKind::Discord, adapter::Content::Text { .. }) => Audience::Everyone,
            _ => Audience::Asker,
        };
        let profile = match outcome {
            Outcome::Refused(say) => {
                return self.say(target(kind, first, &heard.address), say, audience);
            }
            Outcome::NoneOffered => {
                let say = "No pairing code is open.";
                return self.say(target(kind, first, &heard.address), say, audience);
            }
            Outcome::Paired(profile) => profile,
        };
        let desk = Arc::clone(self);
        self.tasks.spawn(async move {
            let effects = desk.gateway.effects();
            let operator = PairedOperator {
                profile: profile.clone(),
                platform: kind.name().to_owned(),
                person: heard.speaker.id.clone(),
                name: heard.speaker.name.clone(),
                paired_at: effects.now(),
            };
            let to = target(kind, &profile, &heard.address);
            if let Err(fault) = effects.store.pair_operator(&operator).await {
                warn!(%fault, "an operator could not be remembered");
                return delivery::reply(effects, &to, &fault.to_string(), audience).await;
            }
            info!(%profile, platform = kind.name(), person = %heard.speaker.id, "paired an operator");
            if let Some(rules) = desk.rules.write().get_mut(&(kind, profile.clone())) {
                rules.operators.insert(heard.speaker.id);
            }
            let say = format!("You are an operator of the profile {profile} now. /help lists the commands.");
            delivery::reply(effects, &to, &say, audience).await;
        });
    }

    fn say(self: &Arc<Self>, to: ReplyTarget, text: impl Into<String>, audience: Audience) {
        let (desk, text) = (Arc::clone(self), text.into());
        self.tasks.spawn(async move {
            delivery::reply(desk.gateway.effects(), &to, &text, audience).await;
        });
    }

    /// Waits until everything heard is with the gateway. Nothing more must come.
    pub(super) async fn cleared(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn target(kind: ChatKind, profile: &ProfileId, address: &str) -> ReplyTarget {
    ReplyTarget {
        platform: kind.name().to_owned(),
        address: switchboard::address(profile, address),
    }
}
