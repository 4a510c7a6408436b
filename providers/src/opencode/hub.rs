//! The one event stream of a server, shared out by session. It connects again when it breaks, and then tells every
//! listener, because what happened in between is not sent again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::api::Api;

/// The pause before a broken stream is opened again.
const AGAIN: Duration = Duration::from_millis(200);
/// The longest silence of the stream: the server sends a heartbeat every ten seconds (1.18.33).
const HEARTBEATS: Duration = Duration::from_secs(45);
/// How many events may wait for one turn. One that takes none for so long is told that it missed some.
const WAITING: usize = 4096;

/// What a turn hears.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum News {
    /// An event of its session: `type` and `properties`.
    Event(Value),
    /// Something happened in a session its own one started.
    Alive,
    /// Events may be missing: the stream broke and is there again.
    Gap,
}

#[derive(Default)]
struct Listeners {
    by_session: HashMap<String, mpsc::Sender<News>>,
    /// Sessions of sub-agents, by the session whose turn they belong to.
    owners: HashMap<String, String>,
}

/// The listeners of one server.
pub(super) struct Hub {
    listeners: Arc<Mutex<Listeners>>,
    /// How often the stream was opened; 0 = not yet.
    opened: watch::Sender<u64>,
}

/// One turn's ear. Dropped = it listens no more.
pub(super) struct Ear {
    session: String,
    news: mpsc::Receiver<News>,
    listeners: Arc<Mutex<Listeners>>,
}

impl Ear {
    /// The next news; `None` = somebody else listens to this session now.
    pub(super) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// What has arrived already.
    pub(super) fn waiting(&mut self) -> Option<News> {
        self.news.try_recv().ok()
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.news.close();
        let mut listeners = self.listeners.lock();
        // A later turn of the session may have taken the place; its sender is still open.
        if listeners
            .by_session
            .get(&self.session)
            .is_some_and(mpsc::Sender::is_closed)
        {
            listeners.by_session.remove(&self.session);
        }
        let session = &self.session;
        listeners.owners.retain(|_, owner| owner != session);
    }
}

impl Hub {
    /// Reads the server's stream until `ended`.
    pub(super) fn start(api: Api, ended: CancellationToken) -> Arc<Self> {
        let hub = Arc::new(Self {
            listeners: Arc::default(),
            opened: watch::Sender::new(0),
        });
        let reading = hub.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = reading.read(&api) => {}
            }
        });
        hub
    }

    /// Listens to a session from now on. Returns when the stream is open: nothing that follows is missed.
    pub(super) async fn listen(&self, session: &str) -> Ear {
        let (sender, news) = mpsc::channel(WAITING);
        self.listeners
            .lock()
            .by_session
            .insert(session.to_owned(), sender);
        let ear = Ear {
            session: session.to_owned(),
            news,
            listeners: self.listeners.clone(),
        };
        let mut opened = self.opened.subscribe();
        // The sender lives in `self`: the wait ends only with the first opening.
        let _ = opened.wait_for(|count| *count > 0).await;
        ear
    }

    async fn read(&self, api: &Api) {
        loop {
            if let Ok(mut events) = api.events().await {
                let mut greeted = false;
                while let Ok(Some(Ok(event))) = timeout(HEARTBEATS, events.next()).await {
                    if !std::mem::replace(&mut greeted, true) {
                        self.open(); // its first event says that it is subscribed
                    }
                    if let Ok(event) = serde_json::from_str::<Value>(&event.data) {
                        self.share(&event, api);
                    }
                }
                tracing::debug!("the event stream of opencode broke; it is opened again");
            }
            sleep(AGAIN).await;
        }
    }

    fn open(&self) {
        let mut again = false;
        self.opened.send_modify(|count| {
            again = *count > 0;
            *count += 1;
        });
        if again {
            for listener in self.listeners.lock().by_session.values() {
                let _ = listener.try_send(News::Gap); // a full one is read on its own time
            }
        }
    }

    fn share(&self, event: &Value, api: &Api) {
        let Some(payload) = event.get("payload") else {
            return;
        };
        let kind = payload.get("type").and_then(Value::as_str);
        let properties = payload.get("properties").unwrap_or(&Value::Null);
        let text = |key: &str| properties.get(key).and_then(Value::as_str);
        match kind {
            Some("permission.asked") => refuse(api, "permission", text("id"), event),
            Some("question.asked") => refuse(api, "question", text("id"), event),
            Some("session.created") => self.adopt(properties),
            _ => {}
        }
        if let Some(session) = text("sessionID") {
            self.tell(session, payload);
        }
    }

    /// A session started by a session somebody listens to.
    fn adopt(&self, properties: &Value) {
        let text = |path: &str| properties.pointer(path).and_then(Value::as_str);
        if let (Some(child), Some(parent)) = (text("/info/id"), text("/info/parentID")) {
            let mut listeners = self.listeners.lock();
            let owner = listeners.owners.get(parent).map_or(parent, String::as_str);
            let owner = owner.to_owned();
            listeners.owners.insert(child.to_owned(), owner);
        }
    }

    fn tell(&self, session: &str, payload: &Value) {
        let listeners = self.listeners.lock();
        let (listener, news) = match listeners.owners.get(session) {
            Some(owner) => (listeners.by_session.get(owner), News::Alive),
            None => (
                listeners.by_session.get(session),
                News::Event(payload.clone()),
            ),
        };
        if let Some(Err(mpsc::error::TrySendError::Full(_))) =
            listener.map(|listener| listener.try_send(news))
        {
            tracing::warn!(session, "a turn is too slow for opencode's events");
        }
    }
}

/// The policy is never to ask: what would be asked is refused at once.
fn refuse(api: &Api, kind: &'static str, id: Option<&str>, event: &Value) {
    let directory = event.get("directory").and_then(Value::as_str);
    if let Some(id) = id {
        let (api, id) = (api.clone(), id.to_owned());
        let directory = directory.map(PathBuf::from);
        tokio::spawn(async move { api.refuse(kind, &id, directory.as_deref()).await });
    }
}
