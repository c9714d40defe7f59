use super::*;
use control::Options;
use edge::runner::Step;
use fixture::policy;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is open");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("a whole answer");
    text
}

/// A step that is under way until it is told to end.
fn busy(controller: &SharedController) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (end, ended) = mpsc::channel::<()>();
    let (began, begun) = mpsc::channel::<()>();
    let controller = controller.clone();
    let step = std::thread::spawn(move || {
        controller.look(|_| {
            began.send(()).expect("the test waits");
            ended.recv().expect("the test ends it");
        });
    });
    begun.recv().expect("it began");
    (end, step)
}

async fn serve(pages: Pages) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    tokio::spawn(pages.serve(socket, Access::Machine, CancellationToken::new()));
    address
}

async fn shown(controller: &SharedController) -> SocketAddr {
    let pages = Pages::new(Clock::start());
    pages.show(controller.clone(), &NoticeSink::default(), Past::default());
    serve(pages).await
}

#[tokio::test]
async fn why_it_does_not_start_is_told_without_ids() {
    let pages = Pages::new(Clock::start());
    pages.say_starting("signing in to Azure failed", "AADSTS700016: application 1234-5678");
    let address = serve(pages).await;
    let ready = get(address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.contains("signing in to Azure failed") && !ready.contains("1234"), "{ready}");
    let status = get(address, "/status").await;
    assert!(status.contains("AADSTS700016: application 1234-5678"), "{status}");
}

#[tokio::test]
async fn pages_are_answered_while_a_step_is_under_way() {
    let mut controller = SharedController::new(Controller::new(policy(), Options::default()));
    let address = shown(&controller).await;
    controller.step(Vec::new(), 1);
    assert!(get(address, "/metrics").await.contains("ballast_plans_total 1\n"));
    let (end, step) = busy(&controller);
    for (path, code, holds) in [
        ("/livez", 200, "ok"),
        ("/healthz", 200, "ok"),
        ("/readyz", 503, "Services are not listed yet"),
        ("/metrics", 200, "ballast_plans_total 1\n"),
        ("/status", 200, "\"cluster\":\"kubernetes\""),
    ] {
        let answer = get(address, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{path}: {answer}");
        assert!(answer.contains(holds), "{path}: {answer}");
    }
    end.send(()).expect("it waits");
    step.join().expect("it ends");
}

#[tokio::test]
async fn what_was_asked_during_a_step_is_answered_at_its_end() {
    let mut controller = SharedController::new(Controller::new(policy(), Options::default()));
    let (asking, waiting) = (controller.clone(), controller.clone());
    let (began, begun) = mpsc::channel::<()>();
    let (end, ended) = mpsc::channel::<()>();
    let busy = controller.clone();
    let step = std::thread::spawn(move || {
        busy.look(|_| {
            began.send(()).expect("the test waits");
            ended.recv().expect("the test ends it");
        });
    });
    begun.recv().expect("it began");
    let hour = Duration::from_secs(3_600);
    let asked = tokio::spawn(async move { asking.look_within(hour, |c| c.counts().plans).await });
    assert_eq!(waiting.look_within(Duration::ZERO, |c| c.counts().plans).await, None);
    end.send(()).expect("it waits");
    step.join().expect("it ends");
    controller.step(Vec::new(), 1);
    assert_eq!(asked.await.expect("it does not panic"), Some(1));
}
