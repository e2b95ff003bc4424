//! A server that other machines can reach: with its own TLS, or behind a proxy with TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use stepwell_server::{Origin, Reach, certificate};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::test_env::TestEnv;

/// A self-signed certificate for `localhost`, made for these tests.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/tls").join(name)
}

fn origin(text: &str) -> Origin {
    Origin::parse(text).unwrap()
}

/// Sends a request over a connection, and reads the answer.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, head: &str) -> String {
    let request = format!("{head}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A client without TLS is disconnected.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn connect(env: &TestEnv) -> TcpStream {
    TcpStream::connect(("127.0.0.1", env.port)).await.unwrap()
}

/// The connection of a client that trusts the certificate.
async fn connect_safely(env: &TestEnv) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(fixture("certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, connect(env).await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_certificate_it_speaks_tls_and_nothing_else() {
    let config = certificate(&fixture("certificate.pem"), &fixture("key.pem")).unwrap();
    let reach = Reach::Tls(Arc::new(config), origin("https://stepwell.example"));
    let env = TestEnv::reached(reach);
    let token = format!("Authorization: Bearer {}", env.operator.reveal());
    let get = |host: &str| format!("GET /api/v1/sessions HTTP/1.1\r\nHost: {host}\r\n{token}");
    let answer = ask(connect_safely(&env).await, &get("stepwell.example")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = ask(connect_safely(&env).await, &get("evil.example")).await;
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    let answer = ask(connect(&env).await, &get("stepwell.example")).await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    // A page with the same name but without TLS is another site.
    let page = format!("{}\r\nOrigin: http://stepwell.example", get("stepwell.example"));
    let answer = ask(connect_safely(&env).await, &page).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_it_answers_to_the_name_of_the_proxy() {
    let env = TestEnv::reached(Reach::Behind(origin("https://stepwell.example")));
    let token = format!("Authorization: Bearer {}", env.operator.reveal());
    let get = |more: &str| format!("GET /api/v1/sessions HTTP/1.1\r\n{token}\r\n{more}");
    let status = async |more: &str| {
        let answer = ask(connect(&env).await, &get(more)).await;
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("Host: stepwell.example").await, "200");
    assert_eq!(status("Host: stepwell.example\r\nOrigin: https://stepwell.example").await, "200");
    assert_eq!(status("Host: stepwell.example\r\nOrigin: http://stepwell.example").await, "403");
    assert_eq!(status("Host: evil.example").await, "421");
    // A browser sends the cookie back over TLS only.
    let body = format!("{{\"code\":\"{}\"}}", env.operator.reveal());
    let login = format!(
        "POST /api/v1/login HTTP/1.1\r\nHost: stepwell.example\r\nX-Stepwell: 1\r\n\
         Content-Type: application/json\r\nContent-Length: {}",
        body.len()
    );
    let mut stream = connect(&env).await;
    let request = format!("{login}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("; Secure"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reached_from_elsewhere_nobody_hears_a_model_speak() {
    let env = TestEnv::reached(Reach::Behind(origin("https://stepwell.example")));
    let strict = stepwell_strict::Strict::start(stepwell_strict::Rules::default()).await.unwrap();
    strict.push(stepwell_strict::Say::text("It is whole."));
    let handle = tokio::task::block_in_place(|| env.start_run(&strict));
    let mut stream = connect(&env).await;
    let request = format!(
        "GET /api/v1/sessions/{}/stream?from=1 HTTP/1.1\r\nHost: stepwell.example\r\n\
         Authorization: Bearer {}\r\n\r\n",
        handle.id(),
        env.operator.reveal()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut heard = String::new();
    while !heard.contains("\"status\":\"success\"") {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(read > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    assert!(heard.contains("It is whole.") && !heard.contains("event: delta"), "{heard}");
    tokio::task::block_in_place(|| handle.join()).unwrap();
}
