//! One chat under test, whatever the platform: people who write and press on one side, scripted subscriptions on the other,
//! and between them the gateway as `baton run` serves it. The conformance suite is written against [`ChatUnderTest`].

mod console;
pub mod crowd;
mod discord;
pub mod process;
mod slack;
pub mod stage;
pub mod talker;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use platforms::escape::Shape;

pub use console::ConsoleRoom;
pub use discord::DiscordRoom;
pub use slack::SlackRoom;
pub use stage::Stage;

/// The longest a test waits for one thing, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at what a person would see.
const LOOK: Duration = Duration::from_millis(20);

/// Where something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// The channel the profile names.
    Main,
    /// Two threads in it.
    Thread(usize),
    /// A channel the profile does not name.
    Denied,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// May speak.
    Anna,
    /// An operator.
    Olga,
    /// Nobody the configuration names.
    Stranger,
}

/// A message of the bot as it stands now.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The platform's name of it.
    pub id: String,
    /// As a person reads it: escapes resolved, unseen marks taken out.
    pub text: String,
    /// As it was sent.
    pub raw: String,
    /// How often it was edited.
    pub edits: usize,
    /// The texts before, as they were sent, oldest first.
    pub earlier: Vec<String>,
    /// When it got its present text, by the platform's clock; `None` = that is not told.
    pub at: Option<Timestamp>,
    /// Whether anybody was notified by it or by an edit of it.
    pub pinged: bool,
    /// Only its asker sees it.
    pub private: bool,
    /// What presses send back.
    pub buttons: Vec<String>,
    pub files: Vec<Vec<u8>>,
}

/// The answer of a command.
#[derive(Debug, Clone)]
pub struct Answered {
    pub shown: Shown,
    /// From the command to its acknowledgement; `None` = the platform asks for none.
    pub acked: Option<Duration>,
}

/// A platform with a gateway behind it. Profile `default` serves [`Spot::Main`] for Anna and Olga.
#[async_trait]
pub trait ChatUnderTest: Send + Sync + Sized + 'static {
    const NAME: &'static str;

    /// Rows of the suite that say nothing about this platform, each with the reason.
    const SKIPS: &'static [(&'static str, &'static str)];

    /// What one message holds; `None` = there is no bound.
    fn shape() -> Option<Shape>;

    /// Opens the platform and starts a gateway that hears it, over scripted subscriptions of these names.
    async fn open(subscriptions: &[&str]) -> Self;

    fn stage(&self) -> &Stage;

    /// Stops the gateway in order and starts another one on the same home.
    async fn restart(&mut self);

    /// Stops the gateway in order, so that nothing is on its way any more.
    async fn stop(&mut self);

    /// The platform's id of a person.
    fn id(&self, who: Who) -> String;

    /// A person writes, naming the bot or not; the message's name.
    async fn say(&self, spot: Spot, who: Who, text: &str, naming: bool) -> String;

    /// A person gives a command in [`Spot::Main`] and waits for its answer.
    async fn command(&self, who: Who, line: &str) -> Answered;

    /// A person presses a button; `false` = it is not there for them.
    fn press(&self, who: Who, on: &Shown, button: &str) -> bool;

    /// What of the bot everybody sees, oldest first.
    fn public(&self, spot: Spot) -> Vec<Shown>;

    /// What of the bot only this person sees in [`Spot::Main`], oldest first.
    fn private(&self, who: Who) -> Vec<Shown>;

    /// The platform delivers everything twice from here on.
    fn deliver_twice(&self);

    /// The platform delivers this message once more.
    fn deliver_again(&self, message: &str);

    /// The next edit of a message meets a rate limit.
    fn limit_next_edit(&self);

    /// Time passes on the platform.
    fn pass(&self, time: Duration);

    /// What was acknowledged too late or not at all, or had to be delivered again because of that.
    fn late_acks(&self) -> Vec<String>;

    /// Fails unless every rule of the platform was kept.
    fn assert_clean(&self);
}

/// Returns what `look` finds as soon as it finds it.
///
/// # Panics
/// After [`PATIENCE`], with `what` and everything in sight.
pub async fn until<C: ChatUnderTest, T>(
    chat: &C,
    what: &str,
    mut look: impl FnMut(&C) -> Option<T>,
) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look(chat) {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not seen. {}", sight(chat));
        tokio::time::sleep(LOOK).await; // the platform's own pace, not ours: nothing tells when a person sees something
    }
}

/// Waits for a message everybody sees whose text satisfies `is`.
pub async fn until_public<C: ChatUnderTest>(
    chat: &C,
    spot: Spot,
    is: impl Fn(&str) -> bool,
) -> Shown {
    until(chat, "a message", |chat| {
        chat.public(spot).into_iter().find(|one| is(&one.text))
    })
    .await
}

/// Waits for a message only this person sees.
pub async fn until_private<C: ChatUnderTest>(
    chat: &C,
    who: Who,
    is: impl Fn(&str) -> bool,
) -> Shown {
    until(chat, "a private message", |chat| {
        chat.private(who).into_iter().find(|one| is(&one.text))
    })
    .await
}

fn sight<C: ChatUnderTest>(chat: &C) -> String {
    let spots = [Spot::Main, Spot::Thread(0), Spot::Thread(1), Spot::Denied];
    let public = spots
        .iter()
        .map(|spot| (format!("{spot:?}"), chat.public(*spot)));
    let private = [Who::Anna, Who::Olga, Who::Stranger]
        .iter()
        .map(|who| (format!("{who:?} alone"), chat.private(*who)));
    let lines = public.chain(private).flat_map(|(place, all)| {
        all.into_iter()
            .map(move |one| format!("  {place}: {:?} ({} edits)", one.text, one.edits))
    });
    let said = chat.stage().said();
    format!(
        "On {}:\n{}\nsaid by the gateway:\n  {}",
        C::NAME,
        lines.collect::<Vec<_>>().join("\n"),
        said.join("\n  ")
    )
}
