//! Sockets, limits and paths. One listener: a Unix socket (0600 in a folder of 0700), or TCP with a token.
//!
//! Every wait has an end: for the head of a request, for its body, for a turn to be free, for the answer. A body is refused
//! by its declared length before a byte of it is read. TCP connections send without delay: an event of a stream that waits
//! for an acknowledgement is 40 ms late.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::flight::Flights;
use super::guard::Guard;
use super::locks::Locks;
use super::paths::{self, Doors, Metrics};
use super::turn::Bridge;
use super::{HttpPlatform, Options};
use crate::Gateway;
use crate::usage::identity::InstallSecret;

/// Where to listen.
#[derive(Debug, Clone)]
pub enum Listen {
    /// A Unix socket at this absolute path.
    Socket(PathBuf),
    /// A TCP port; 0 = any free one. There is no listener without a token, on loopback neither.
    Tcp {
        address: SocketAddr,
        token: SecretString,
    },
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot listen on {place}: {source}")]
    Listen {
        place: String,
        #[source]
        source: io::Error,
    },
    #[error("another gateway listens on {0}; stop it, or set another `http.listen`")]
    InUse(String),
    #[error("{0} is there and is no socket; remove it, or set another `http.listen`")]
    NotASocket(String),
    #[error("the token for {0} is empty; `http.token_env` or `http.token_file` names one")]
    EmptyToken(SocketAddr),
    #[error("the secret of this installation cannot be read: {0}")]
    Secret(#[source] io::Error),
}

/// How long open connections may take to end once the gateway stops.
const LEAVE: Duration = Duration::from_secs(5);
/// After a failed accept (no file descriptors left): trying at once again would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The head of a request, in bytes and lines; more is answered with 431.
const HEAD_BYTES: usize = 32 * 1024;
const HEAD_LINES: usize = 64;

/// The running surface.
pub struct Server {
    address: Option<SocketAddr>,
    stop: CancellationToken,
    connections: TaskTracker,
    bridge: Arc<Bridge>,
    _socket: Option<SocketFile>,
}

impl Server {
    /// Listens and serves. The gateway must have been started with the same `platform`.
    pub async fn start(
        listen: Listen,
        gateway: &Gateway,
        platform: Arc<HttpPlatform>,
        options: Options,
    ) -> Result<Self, ServerError> {
        let effects = Arc::clone(gateway.effects());
        let root = effects.settings.root.clone();
        let secret = tokio::task::spawn_blocking(move || InstallSecret::of(&root)).await;
        let secret = secret.map_err(io::Error::other).and_then(|secret| secret);
        let secret = secret.map_err(ServerError::Secret)?;
        let bridge = Arc::new(Bridge {
            effects,
            sessions: Arc::clone(gateway.sessions()),
            platform,
            options,
            secret: secret.fingerprint("baton", "session bridge").into_bytes(),
            locks: Arc::new(Locks::default()),
            flights: Arc::new(Flights::default()),
            turns: Arc::new(Semaphore::new(options.turns)),
            rotations: AtomicU64::new(0),
            tasks: TaskTracker::new(),
        });
        let (listener, guard, address, socket) = bind(listen).await?;
        let doors = Arc::new(Doors {
            bridge: Arc::clone(&bridge),
            guard,
            metrics: Metrics::default(),
        });
        let stop = CancellationToken::new();
        let connections = TaskTracker::new();
        let serving = Serving {
            router: paths::router(doors),
            options,
            stop: stop.clone(),
            connections: connections.clone(),
            room: Arc::new(Semaphore::new(options.connections)),
        };
        connections.spawn(serving.accept(listener));
        Ok(Self {
            address,
            stop,
            connections,
            bridge,
            _socket: socket,
        })
    }

    /// The TCP address; `None` = a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Stops listening, cuts and seals the turns that run, and lets their requests be answered.
    pub async fn stop(self) {
        self.stop.cancel();
        self.bridge.sessions.drain().await;
        self.bridge.tasks.close();
        self.connections.close();
        let over = async {
            self.bridge.tasks.wait().await;
            self.connections.wait().await;
        };
        if timeout(LEAVE + ACCEPT_PAUSE, over).await.is_err() {
            warn!("some connections did not end in time and are dropped");
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

async fn bind(
    listen: Listen,
) -> Result<(Listener, Guard, Option<SocketAddr>, Option<SocketFile>), ServerError> {
    match listen {
        Listen::Tcp { address, token } => {
            if token.expose_secret().trim().is_empty() {
                return Err(ServerError::EmptyToken(address));
            }
            let cannot = |source| ServerError::Listen {
                place: address.to_string(),
                source,
            };
            let listener = TcpListener::bind(address).await.map_err(cannot)?;
            let address = listener.local_addr().map_err(cannot)?;
            info!(%address, "listening for programs; a token is needed");
            let guard = Guard::tcp(address, token);
            Ok((Listener::Tcp(listener), guard, Some(address), None))
        }
        Listen::Socket(path) => {
            let (listener, file) = SocketFile::take(&path).await?;
            info!(socket = %path.display(), "listening for programs");
            Ok((Listener::Unix(listener), Guard::Socket, None, Some(file)))
        }
    }
}

/// The socket's file and the lock beside it. The lock file is never removed: whoever removed it could lock another one
/// than the next to come.
struct SocketFile {
    path: PathBuf,
    _lock: File,
}

impl SocketFile {
    async fn take(path: &Path) -> Result<(UnixListener, Self), ServerError> {
        let shown = || path.display().to_string();
        let cannot = |source| ServerError::Listen {
            place: shown(),
            source,
        };
        let lock = lock_beside(path).map_err(cannot)?;
        let Some(lock) = lock else {
            return Err(ServerError::InUse(shown()));
        };
        match std::fs::symlink_metadata(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(error)),
            Ok(there) if !there.file_type().is_socket() => {
                return Err(ServerError::NotASocket(shown()));
            }
            // Whoever answers holds no lock of ours, and is not pushed aside all the same.
            Ok(_) if UnixStream::connect(path).await.is_ok() => {
                return Err(ServerError::InUse(shown()));
            }
            Ok(_) => std::fs::remove_file(path).map_err(cannot)?,
        }
        let listener = UnixListener::bind(path).map_err(cannot)?;
        let file = Self {
            path: path.to_owned(),
            _lock: lock,
        };
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(cannot)?;
        Ok((listener, file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            debug!(%error, "the socket was gone already");
        }
    }
}

/// The lock beside a socket, in a folder that is ours alone; `None` = another process holds it.
fn lock_beside(socket: &Path) -> io::Result<Option<File>> {
    if let Some(folder) = socket.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let there = std::fs::metadata(folder)?;
        let ours = there.uid() == rustix::process::geteuid().as_raw();
        if !ours {
            let why = format!("the folder {} belongs to somebody else", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if there.permissions().mode() & 0o077 != 0 {
            std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        }
    }
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    let lock = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(PathBuf::from(name))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// What every connection needs.
#[derive(Clone)]
struct Serving {
    router: Router,
    options: Options,
    stop: CancellationToken,
    connections: TaskTracker,
    room: Arc<Semaphore>,
}

impl Serving {
    async fn accept(self, listener: Listener) {
        loop {
            let next = async {
                // Taken first: who cannot be served yet waits in the kernel's queue.
                let Ok(place) = Arc::clone(&self.room).acquire_owned().await else {
                    return Err(io::Error::other("the room is closed"));
                };
                match &listener {
                    Listener::Tcp(listener) => {
                        let (stream, _) = listener.accept().await?;
                        stream.set_nodelay(true)?;
                        Ok((place, Stream::Tcp(stream)))
                    }
                    Listener::Unix(listener) => {
                        Ok((place, Stream::Unix(listener.accept().await?.0)))
                    }
                }
            };
            let next = tokio::select! {
                next = next => next,
                () = self.stop.cancelled() => return,
            };
            match next {
                Ok((place, stream)) => {
                    let serving = self.clone();
                    self.connections.spawn(async move {
                        match stream {
                            Stream::Tcp(stream) => serving.serve(stream).await,
                            Stream::Unix(stream) => serving.serve(stream).await,
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    warn!(%error, "a connection could not be taken");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        let service = TowerToHyperService::new(self.router);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.head_wait)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEAD_LINES)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                match timeout(LEAVE, connection).await {
                    Ok(ended) => ended,
                    Err(_) => return,
                }
            }
        };
        if let Err(error) = ended {
            debug!(%error, "a connection ended early");
        }
    }
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(UnixStream),
}
