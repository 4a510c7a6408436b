//! What must not get in: refused fast, and nothing is started for it.

use std::time::Duration;

use gateway_host::http::{Listen, Options, Server};
use support::{World, says};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::http::{Program, TOKEN};

const BODY: &str = r#"{"messages":[{"role":"user","content":"q"}]}"#;

/// Writes raw bytes and reads until the other side closes.
async fn raw(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes).await; // the other side may refuse before it has read everything
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

async fn sent(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address().unwrap()).await.unwrap();
    raw(&mut stream, bytes).await
}

fn request(server: &Server, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let host = server.address().unwrap();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn status(said: &str) -> &str {
    said.split(' ').nth(1).unwrap_or_default()
}

/// Cases 61 and 68, and everything else a stranger may try.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_and_nothing_is_started() {
    let world = World::builder().plan("one").build().await;
    let options = Options {
        body_max: 4096,
        head_wait: Duration::from_millis(300),
        body_wait: Duration::from_millis(300),
        ..Options::default()
    };
    let program = Program::of(&world, options).await;
    let server = &program.server;
    let chat = "/v1/chat/completions";
    let plain = String::from_utf8(request(server, chat, "", BODY)).unwrap();
    let host = format!("host: {}", server.address().unwrap());
    let token = format!("authorization: Bearer {TOKEN}");
    let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    let rows: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("foreign_host", plain.replace(&host, "host: evil.example").into(), "403", "forbidden_host"),
        ("no_host", plain.replace(&format!("{host}\r\n"), "").into(), "403", "forbidden_host"),
        ("any_origin", request(server, chat, "origin: http://localhost\r\n", BODY), "403", "forbidden_origin"),
        ("null_origin", request(server, chat, "origin: null\r\n", BODY), "403", "forbidden_origin"),
        ("no_token", plain.replace(&format!("{token}\r\n"), "").into(), "401", "invalid_token"),
        ("wrong_token", plain.replace(TOKEN, "another token").into(), "401", "invalid_token"),
        ("foreign_host_of_health", plain.replace(chat, "/healthz").replace("POST", "GET").replace(&host, "host: evil.example").into(), "403", "forbidden_host"),
        ("path_up", request(server, "/v1/../v1/chat/completions", "", BODY), "404", "not_found"),
        ("path_doubled", request(server, "//v1/chat/completions", "", BODY), "404", "not_found"),
        ("path_escaped", request(server, "/v1/chat%2fcompletions", "", BODY), "404", "not_found"),
        ("path_with_more", request(server, "/v1/chat/completions/", "", BODY), "404", "not_found"),
        ("path_is_checked_before_the_method", plain.replace("POST", "GET").replace(chat, "/v1/chat").into(), "404", "not_found"),
        ("wrong_method", plain.replace("POST", "GET").into(), "405", "method_not_allowed"),
        ("a_gigabyte_is_declared", plain.replace(&format!("content-length: {}", BODY.len()), "content-length: 1073741824").into(), "413", "request_too_large"),
        ("a_chunked_flood", format!("POST {chat} HTTP/1.1\r\n{host}\r\n{token}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n1400\r\n{}\r\n0\r\n\r\n", "x".repeat(0x1400)).into(), "413", "request_too_large"),
        ("invalid_utf8", { let mut bytes = request(server, chat, "", "12345678"); let at = bytes.len() - 4; bytes[at] = 0xff; bytes }, "400", "invalid_json"),
        ("no_body", request(server, chat, "", ""), "400", "invalid_json"),
        ("headers_without_end", request(server, chat, &many, BODY), "431", ""),
        ("one_huge_header", request(server, chat, &format!("x: {}\r\n", "y".repeat(80_000)), BODY), "431", ""),
        ("garbage", b"\x00\x01\x02 nonsense\r\n\r\n".to_vec(), "400", ""),
        ("a_bad_length", plain.replace(&format!("content-length: {}", BODY.len()), "content-length: ten").into(), "400", ""),
        ("two_lengths", request(server, chat, "content-length: 3\r\n", BODY), "400", ""),
        ("a_body_that_does_not_come", plain.replace(&format!("content-length: {}", BODY.len()), "content-length: 1000").into(), "408", "request_timeout"),
    ];
    for (name, bytes, wanted, code) in rows {
        let said = sent(server, &bytes).await;
        assert_eq!(status(&said), wanted, "{name}: {said}");
        assert!(
            code.is_empty() || said.contains(&format!("\"code\":\"{code}\"")),
            "{name}: {said}"
        );
    }
    // A head that never ends is cut, whether it drips or stands still.
    let mut slow = TcpStream::connect(server.address().unwrap()).await.unwrap();
    let said = raw(&mut slow, b"POST /v1/chat/completions HTTP/1.1\r\nhost: ").await;
    assert!(matches!(status(&said), "" | "408"), "{said}");
    assert!(world.sub("one").attempts().is_empty());

    // After all that it still works, chunked too; the query is no part of the path.
    world.sub("one").play(says("fine"));
    let chunked = format!(
        "POST {chat}?a=b HTTP/1.1\r\n{host}\r\n{token}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{BODY}\r\n0\r\n\r\n",
        BODY.len()
    );
    let said = sent(server, chunked.as_bytes()).await;
    assert!(status(&said) == "200" && said.contains("fine"), "{said}");
    let health = format!("GET /healthz HTTP/1.1\r\n{host}\r\nconnection: close\r\n\r\n");
    assert!(
        sent(server, health.as_bytes())
            .await
            .ends_with("{\"status\":\"ok\"}")
    );
    program.server.stop().await;
}

/// Cases 69 and 70: the socket is ours alone, a stale one is taken over, a live one is left.
#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_private_and_taken_once() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let world = World::builder().plan("one").build().await;
    let folder = world.home.path().join("run");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.join("bridge.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap()); // left by a process that is gone
    let server = world
        .serve(Listen::Socket(path.clone()), Options::default())
        .await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&folder)), (0o600, 0o700));
    assert_eq!(server.address(), None);

    let inode = std::fs::metadata(&path).unwrap().ino();
    let second = world.try_serve(Listen::Socket(path.clone())).await;
    assert!(
        second
            .unwrap_err()
            .to_string()
            .contains("another gateway listens")
    );
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);

    world.sub("one").play(says("over the socket"));
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let bytes = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let said = raw(&mut stream, bytes.as_bytes()).await;
    assert!(said.contains("over the socket"), "{said}");
    server.stop().await;
    assert!(!path.exists());

    support::write(&path, b"a file of somebody");
    let error = world
        .try_serve(Listen::Socket(path.clone()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("is no socket"), "{error}");
    assert!(path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_port_without_a_token() {
    let world = World::builder().plan("one").build().await;
    let listen = Listen::Tcp {
        address: "127.0.0.1:0".parse().unwrap(),
        token: " ".into(),
    };
    let error = world.try_serve(listen).await.unwrap_err();
    assert!(error.to_string().contains("token"), "{error}");
}
