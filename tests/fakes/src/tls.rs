//! TLS in front of a fake: for clients that insist on `https://discord.com`.
//!
//! The test's client resolves that name to this listener and trusts [`Front::authority`], so the production path runs,
//! rate limiter included.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A listener that speaks TLS.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    /// PEM of the authority that signed its certificate; made anew for each fake.
    pub(crate) authority: String,
    task: JoinHandle<()>,
}

impl Front {
    /// Serves `router` for the host `name`.
    pub(crate) async fn start(name: &str, router: Router) -> Self {
        let (config, authority) = certificate(name);
        let tcp = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has a free port");
        let address = tcp.local_addr().expect("a bound listener has an address");
        let listener = TlsListener {
            tcp,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        };
        let task = tokio::spawn(async move {
            let served = axum::serve(listener, router).await;
            served.expect("axum serves until aborted");
        });
        Self {
            address,
            authority,
            task,
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn certificate(name: &str) -> (ServerConfig, String) {
    let key = || KeyPair::generate().expect("ring makes keys");
    let mut params = CertificateParams::new(Vec::new()).expect("no names, no fault");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(params, key()).expect("a fresh authority signs itself");
    let leaf_key = key();
    let leaf = CertificateParams::new(vec![name.to_owned()])
        .and_then(|params| params.signed_by(&leaf_key, &authority))
        .expect("the authority signs");
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![leaf.der().clone()], private)
            })
            .expect("a fresh certificate fits its key");
    (config, authority.pem())
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok((stream, peer)) = self.tcp.accept().await
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
