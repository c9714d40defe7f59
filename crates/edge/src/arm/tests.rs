use super::*;
use crate::credential::{CredentialError, Secret};
use crate::fake::{Act, Fake, Then, json};
use ::arm::Method;
use futures_util::future::BoxFuture;
use model::Etag;
use serde_json::json;
use std::sync::Mutex;

const LONG: Duration = Duration::from_secs(60);

fn sender(url: &str) -> Sender {
    Sender::new(Web::loopback().unwrap(), url, None, "ballast/test").unwrap()
}

fn request(method: Method, target: Target) -> Request {
    let body = method.is_write().then(|| json!({"location": "west"}).into());
    let condition = match method.is_write() {
        true => ::arm::Condition::Unchanged(Etag::new("W/\"1\"")),
        false => ::arm::Condition::None,
    };
    Request { method, target, condition, body, correlation: "c-1".into() }
}

fn path(text: &str) -> Target {
    Target::Path(text.into())
}

fn fault(answer: Answer) -> TransportFault {
    match answer {
        Answer::Fault(fault) => fault,
        Answer::Reply(reply) => panic!("no fault but {reply:?}"),
    }
}

fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::Reply(reply) => *reply,
        Answer::Fault(fault) => panic!("no reply but {fault:?}"),
    }
}

/// Gives `t0`, and after each refusal the next one.
#[derive(Debug, Default)]
struct Numbered(Mutex<u32>);

impl TokenSource for Numbered {
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
        let secret = Secret::new(format!("t{}", self.0.lock().unwrap()));
        Box::pin(async { Ok(Token { secret, expires_ms: u64::MAX, refresh_ms: None }) })
    }

    fn forget(&self, _: &Token) {
        *self.0.lock().unwrap() += 1;
    }
}

/// A sender that shows its tokens to a loopback server, which only tests may do.
fn sender_with_tokens(url: &str) -> Sender {
    let mut sender = sender(url);
    sender.tokens = Some(Arc::new(Numbered::default()));
    sender
}

#[tokio::test]
async fn a_write_carries_its_headers_and_the_answer_its_own() {
    let fake = Fake::start(|_, _| {
        let headers = vec![
            ("Azure-AsyncOperation", "http://127.0.0.1/op".to_string()),
            ("Location", "http://127.0.0.1/loc".to_string()),
            ("Retry-After", "3".to_string()),
            ("x-ms-ratelimit-remaining-subscription-writes", "99".to_string()),
            ("x-ms-error-code", "Odd".to_string()),
        ];
        Act::Reply(201, headers, r#"{"name":"x"}"#.into())
    })
    .await;
    let sender = sender(&fake.url);
    let answer = sender.send(&request(Method::Put, path("/subscriptions/s?api-version=1"))).await;
    let expected = Reply {
        status: 201,
        async_operation: Some("http://127.0.0.1/op".into()),
        location: Some("http://127.0.0.1/loc".into()),
        retry_after_ms: Some(3000),
        error_code: Some("Odd".into()),
        remaining: vec![("x-ms-ratelimit-remaining-subscription-writes".into(), 99)],
        body: Some(json!({"name": "x"}).into()),
        page: None,
    };
    assert_eq!(reply(answer), expected);
    let seen = &fake.seen()[0];
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("PUT", "/subscriptions/s?api-version=1")
    );
    assert_eq!(seen.body, r#"{"location":"west"}"#);
    assert_eq!(seen.header("if-match"), "W/\"1\"");
    assert_eq!(seen.header("content-type"), "application/json");
    assert_eq!(seen.header("accept"), "application/json");
    assert_eq!(seen.header("user-agent"), "ballast/test");
    assert_eq!(seen.header("x-ms-correlation-request-id"), "c-1");
    assert_eq!(seen.header("x-ms-client-request-id").len(), 36);
    assert_eq!(seen.header("authorization"), "");
}

#[tokio::test]
async fn an_address_of_another_origin_is_not_followed() {
    let fake = Fake::start(|_, _| json(200, &json!({}))).await;
    let sender = sender(&fake.url);
    let own = Target::Url(format!("{}/operations/1?t=2", fake.url));
    assert_eq!(reply(sender.send(&request(Method::Get, own)).await).status, 200);
    for url in ["https://management.azure.com/op?secret=1", "http://127.0.0.1:1/op", "/op", "x"] {
        let answer = sender.send(&request(Method::Get, Target::Url(url.into()))).await;
        let fault = fault(answer);
        let TransportFault::Foreign(why) = fault else { panic!("{url}: {fault:?}") };
        let came = url.split('?').next().unwrap();
        assert!(why.contains(came) && !why.contains("secret"), "{why}");
        assert!(!came.contains("//") || why.contains(&fake.url), "what is allowed: {why}");
    }
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn faults_say_whether_the_request_may_have_arrived() {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", socket.local_addr().unwrap());
    drop(socket);
    let answer = sender(&nobody).send(&request(Method::Put, path("/x"))).await;
    assert!(matches!(fault(answer), TransportFault::NotSent(_)));

    // It speaks no TLS.
    let plain = Fake::start(|_, _| json(200, &json!({}))).await;
    let url = plain.url.replace("http:", "https:");
    let tokens: Arc<dyn TokenSource> = Arc::new(Numbered::default());
    let tls = Sender::new(Web::loopback().unwrap(), &url, Some(tokens), "t").unwrap();
    let answer = tls.send(&request(Method::Put, path("/x"))).await;
    assert!(matches!(fault(answer), TransportFault::NotSent(_)));

    let dropping = Fake::start(|_, _| Act::Drop).await;
    let answer = sender(&dropping.url).send(&request(Method::Put, path("/x"))).await;
    assert!(matches!(fault(answer), TransportFault::Ambiguous(_)));

    let cutting = Fake::start(|_, _| Act::Stream(vec!["{".into()], Then::Cut)).await;
    let answer = sender(&cutting.url).send(&request(Method::Put, path("/x"))).await;
    assert!(matches!(fault(answer), TransportFault::Ambiguous(_)));

    let hanging = Fake::start(|_, _| Act::Hang).await;
    let brief = sender(&hanging.url).with_limit(Duration::from_millis(50));
    let answer = brief.send(&request(Method::Put, path("/x"))).await;
    assert!(matches!(fault(answer), TransportFault::Ambiguous(_)));
}

#[tokio::test]
async fn a_body_beyond_the_cap_is_not_read_to_its_end() {
    let fake =
        Fake::start(|_, _| Act::Stream(vec!["x".repeat(600), "y".repeat(600)], Then::Hang)).await;
    let web = Web::loopback().unwrap().with_cap(1000);
    let sender = Sender::new(web, &fake.url, None, "t").unwrap().with_limit(LONG);
    let fault = fault(sender.send(&request(Method::Get, path("/x"))).await);
    assert!(format!("{fault:?}").contains("1000 bytes"), "{fault:?}");
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let fake = Fake::start(|seen, _| match seen.header("authorization") {
        "Bearer t1" => json(200, &json!({})),
        _ => json(401, &json!({"error": {"code": "ExpiredAuthenticationToken"}})),
    })
    .await;
    let sender = sender_with_tokens(&fake.url);
    assert_eq!(reply(sender.send(&request(Method::Get, path("/x"))).await).status, 200);
    assert_eq!(fake.seen().len(), 2);

    let refusing = Fake::start(|_, _| json(401, &json!({}))).await;
    let sender = sender_with_tokens(&refusing.url);
    assert_eq!(reply(sender.send(&request(Method::Get, path("/x"))).await).status, 401);
    assert_eq!(refusing.seen().len(), 2);
}

#[test]
fn plain_http_is_refused_at_construction_and_tls_wants_tokens() {
    let web = Web::loopback().unwrap();
    let refused = Sender::new(web.clone(), "http://10.1.2.3:80", None, "t").unwrap_err();
    assert!(refused.to_string().contains("loopback"), "{refused}");
    let refused = Sender::new(web.clone(), "https://management.azure.com", None, "t").unwrap_err();
    assert!(matches!(refused, SenderError::NoCredential(_)));
    let tokens: Arc<dyn TokenSource> = Arc::new(Numbered::default());
    let local = Sender::new(web, "http://localhost:1", Some(tokens), "t").unwrap();
    assert!(local.tokens.is_none());
}

/// While it is asked for a token, the lease is lost.
#[derive(Debug)]
struct Slow(Held);

impl TokenSource for Slow {
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
        self.0.set_deadline_ms(0);
        let secret = Secret::new("t");
        Box::pin(async { Ok(Token { secret, expires_ms: u64::MAX, refresh_ms: None }) })
    }

    fn forget(&self, _: &Token) {}
}

#[tokio::test]
async fn a_write_that_waited_for_its_token_longer_than_the_lease_lasts_is_not_sent() {
    let fake = Fake::start(|_, _| json(200, &json!({}))).await;
    let held = Held::always();
    let mut sender = sender(&fake.url).under_lease(held.clone(), Clock::start());
    sender.send(&request(Method::Put, path("/held"))).await;
    assert_eq!(fake.seen().len(), 1);
    sender.tokens = Some(Arc::new(Slow(held)));
    let answer = sender.send(&request(Method::Put, path("/lost"))).await;
    assert!(matches!(fault(answer), TransportFault::NotSent(_)));
    assert_eq!(fake.seen().len(), 1);
    // Reading is for everybody.
    reply(sender.send(&request(Method::Get, path("/lost"))).await);
    assert_eq!(fake.seen().len(), 2);
}

#[tokio::test]
async fn a_creation_asks_that_nothing_stands() {
    let fake = Fake::start(|_, _| json(201, &json!({}))).await;
    let creation =
        Request { condition: ::arm::Condition::Absent, ..request(Method::Put, path("/x")) };
    sender(&fake.url).send(&creation).await;
    let seen = fake.seen();
    assert_eq!(seen[0].header("if-none-match"), "*");
    assert_eq!(seen[0].header("if-match"), "");
}
