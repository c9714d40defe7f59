//! Who is shown the console, and what every page is sent with.

use crate::support::{Emulators, Process, http, http_text, wait_for};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// What tells about Services.
const GUARDED: [&str; 13] = [
    "/",
    "/topology",
    "/services/default/web",
    "/services/default/web/explained",
    "/plan",
    "/timeline",
    "/findings",
    "/events",
    "/status",
    "/history",
    "/console.css",
    "/console.js",
    "/console.svg",
];

/// An answer's head and body to a request with these headers.
fn get(address: &str, path: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn start(emulators: &Emulators, flags: &[&str]) -> (Process, String) {
    let words = emulators.words(&["run", "--leader-elect=false", "--port", "0"]);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(flags);
    let mut process = Process::start_logging(&words);
    let line = process.line_with("health");
    let address = line.split("://").nth(1).unwrap().trim().to_owned();
    (process, address)
}

fn write_token(emulators: &Emulators) -> String {
    let path = emulators.path("token");
    std::fs::write(&path, format!("{TOKEN}\n")).unwrap();
    path.display().to_string()
}

#[test]
fn every_page_has_the_policy_and_tells_of_a_service() {
    let emulators = Emulators::start();
    let (_controller, address) = start(&emulators, &[]);
    let ip = emulators.serve("web");
    wait_for("a quiet plan", || {
        let (_, plan) = http_text(&address, "GET", "/plan", None);
        plan.contains("Nothing to do.").then_some(())
    });
    let host = format!("host: {address}\r\n");
    for path in GUARDED.iter().filter(|p| !["/events", "/status", "/history"].contains(p)) {
        let (head, body) = get(&address, path, &host);
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        let policy = format!("content-security-policy: {}", console::CONTENT_SECURITY_POLICY);
        for header in
            [policy.as_str(), "x-content-type-options: nosniff", "cache-control: no-store"]
        {
            assert!(head.contains(header), "{path} is sent without {header}: {head}");
        }
        assert!(!body.is_empty(), "{path} is empty");
    }
    let shown = |path: &str| get(&address, path, &host).1;
    assert!(shown("/").contains("href=\"/services/default/web\"") && shown("/").contains(&ip));
    let overview = shown("/");
    assert!(overview.contains("Resource Manager writes") && overview.contains("network reads"));
    let (_, metrics) = http_text(&address, "GET", "/metrics", None);
    for name in ["left", "share_percent", "waiting", "refusals_total"] {
        let of = |line: &&str| line.starts_with(&format!("ballast_budget_{name}{{limit="));
        let lines: Vec<&str> = metrics.lines().filter(of).collect();
        assert!(lines.len() >= 4, "ballast_budget_{name}: {lines:?} of {metrics}");
    }
    let service = shown("/services/default/web");
    for part in [&ip, "is programmed at", "TCP 80 → 80", "Nothing to do.", "ballast"] {
        assert!(service.to_lowercase().contains(&part.to_lowercase()), "{part:?}: {service}");
    }
    assert!(shown("/timeline").contains("loadBalancers/kubernetes"));
    assert!(shown("/services/default/web/explained").contains("spec.ports"));
    let (head, _) = get(&address, "/services/default/none", &host);
    assert!(head.starts_with("http/1.1 404"), "{head}");
}

#[test]
fn a_name_from_elsewhere_is_not_answered_on_loopback() {
    let up = &mut Process::start(&["up", "--port", "0"]);
    let line = up.line_with("  console ");
    let address = line.split("http://").nth(1).unwrap().trim().trim_end_matches('/').to_owned();
    for path in GUARDED {
        let (head, body) = get(&address, path, "host: ballast.example.com\r\n");
        assert!(head.starts_with("http/1.1 403") && !body.contains("<html"), "{path}: {head}");
    }
    let (head, _) = get(&address, "/livez", "host: ballast.example.com\r\n");
    assert!(head.starts_with("http/1.1 200"), "probes name hosts as they like: {head}");
    let (head, _) = get(&address, "/", "host: localhost:1\r\n");
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[test]
fn a_plain_address_for_everybody_has_health_and_metrics_alone() {
    let emulators = Emulators::start();
    let (_controller, address) = start(&emulators, &["--bind-address", "0.0.0.0"]);
    let address = address.replace("0.0.0.0", "127.0.0.1");
    for path in GUARDED {
        let (code, text) = http_text(&address, "GET", path, None);
        assert_eq!(code, 403, "{path}: {text}");
        assert!(text.contains("--console-token-file"), "{path} does not say what to do: {text}");
    }
    for path in ["/healthz", "/livez", "/metrics"] {
        assert_eq!(http(&address, "GET", path, None).0, 200, "{path}");
    }
}

#[test]
fn a_token_is_wanted_wherever_there_is_one() {
    let emulators = Emulators::start();
    let token = write_token(&emulators);
    let (_controller, address) = start(&emulators, &["--console-token-file", &token]);
    let host = format!("host: {address}\r\n");
    for path in GUARDED {
        let (head, _) = get(&address, path, &host);
        assert!(head.starts_with("http/1.1 401"), "{path}: {head}");
        assert!(head.contains("www-authenticate: basic"), "a browser is not asked: {head}");
    }
    let with_token = format!("{host}authorization: Bearer {TOKEN}\r\n");
    let (head, body) = get(&address, "/console.css", &with_token);
    assert!(head.starts_with("http/1.1 200") && !body.contains(TOKEN), "{head}");
    let renewed = TOKEN.replace('0', "a");
    let with_renewed = format!("{host}authorization: Bearer {renewed}\r\n");
    std::fs::write(&token, &renewed).unwrap();
    assert!(
        get(&address, "/console.css", &with_token).0.starts_with("http/1.1 401"),
        "it is renewed"
    );
    assert!(get(&address, "/console.css", &with_renewed).0.starts_with("http/1.1 200"));
    std::fs::write(&token, "short").unwrap();
    assert!(
        get(&address, "/console.css", &with_renewed).0.starts_with("http/1.1 200"),
        "the last stays"
    );
    let (code, _) = http_text(&address, "GET", "/livez", None);
    assert_eq!(code, 200);
}

#[test]
fn a_token_is_not_sent_in_plain_and_a_short_one_is_refused() {
    let emulators = Emulators::start();
    let token = write_token(&emulators);
    let plain = ["run", "--bind-address", "0.0.0.0", "--console-token-file", &token];
    let (code, _, error) = emulators.run(&plain);
    assert_eq!(code, 64, "{error}");
    assert!(error.contains("--tls-cert-file") && error.contains("0.0.0.0"), "{error}");
    std::fs::write(&token, "short").unwrap();
    let (code, _, error) = emulators.run(&["run", "--console-token-file", &token]);
    assert_eq!(code, 64, "{error}");
    assert!(error.contains("16 or more") && !error.contains("short"), "{error}");
}

#[test]
fn with_tls_and_a_token_the_console_is_served_to_everybody_who_knows_it() {
    let emulators = Emulators::start();
    let token = write_token(&emulators);
    let path = |name: &str| emulators.path(name).display().to_string();
    let (certificate, key) = (path("tls.crt"), path("tls.key"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-subj", "/CN=localhost", "-keyout", &key, "-out", &certificate])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    let flags = [
        "--bind-address",
        "0.0.0.0",
        "--console-token-file",
        &token,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
    ];
    let (_controller, address) = start(&emulators, &flags);
    let port = address.rsplit(':').next().unwrap();
    // A client that connects and says nothing holds up nobody.
    let _silent = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let ask = |path: &str, authorization: &str| {
        let client = format!("127.0.0.1:{port}");
        let mut client = Command::new("openssl")
            .args(["s_client", "-quiet", "-connect", &client])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: ballast.example.com\r\nconnection: close\r\n\
             {authorization}\r\n"
        );
        client.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        client.wait().unwrap();
        answer
    };
    let page = wait_for("the page", || {
        let page = ask("/findings", &format!("authorization: Bearer {TOKEN}\r\n"));
        // It is served before the first lists have been read.
        page.contains("Nothing is wrong.").then_some(page)
    });
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let closed = ask("/findings", "");
    assert!(closed.starts_with("HTTP/1.1 401") && !closed.contains("<html"), "{closed}");
    assert!(ask("/livez", "").starts_with("HTTP/1.1 200"));
    let wrong = emulators.run(&["run", "--tls-cert-file", &key, "--tls-key-file", &key]);
    assert_eq!(wrong.0, 64, "{}", wrong.2);
}
