//! Encrypted connections: certificates are checked, and nothing is said to a server whose certificate is not trusted.
#![cfg(feature = "http")]

mod support;

use std::sync::Arc;

use covel_gateway::testing::{FixtureServer, Reply};
use covel_gateway::{HttpGateway, HttpOptions};
use covel_model::ModelErrorKind;
use support::{ask, config, quick, slot};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A TLS front that passes everything on to a plain server; answers with its port and its certificate.
async fn tls_front(server: &FixtureServer) -> (u16, Vec<u8>) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = signed.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("a server");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let target = server.address();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut encrypted) = acceptor.accept(socket).await else {
                    return;
                };
                let Ok(mut plain) = TcpStream::connect(target).await else {
                    return;
                };
                let _ = tokio::io::copy_bidirectional(&mut encrypted, &mut plain).await;
            });
        }
    });
    (port, certificate.to_vec())
}

#[tokio::test]
async fn only_trusted_servers_are_spoken_to() {
    let server = FixtureServer::start([Reply::chat_text(&["Safe."])]).await.expect("a free port");
    let (port, certificate) = tls_front(&server).await;
    let slots = slot("story", &format!("https://localhost:{port}/v1"), "");

    let strangers = HttpGateway::new(config(&slots), HttpOptions { limits: quick(), ..HttpOptions::default() });
    let outcome = ask(&strangers).await;
    assert_eq!(outcome.kind(), Some(ModelErrorKind::Unreachable), "{outcome:?}");
    assert!(server.requests().is_empty());

    let options = HttpOptions { limits: quick(), extra_roots: vec![certificate], ..HttpOptions::default() };
    assert_eq!(ask(&HttpGateway::new(config(&slots), options.clone())).await.text, "Safe.");

    // The right certificate for another name.
    let other = slot("story", &format!("https://127.0.0.1:{port}/v1"), "");
    assert_eq!(ask(&HttpGateway::new(config(&other), options)).await.kind(), Some(ModelErrorKind::Unreachable));
    assert_eq!(server.requests().len(), 1);
}
