use super::*;
use ::arm::{Method, Reply, Request, Target};
use control::{Notice, NoticeKind};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::sync::Notify;

/// A controller that plays back effects and writes down what it is given.
struct Script {
    effects: VecDeque<Vec<Effect>>,
    wakes: VecDeque<Option<u64>>,
    steps: mpsc::UnboundedSender<(Vec<Event>, u64)>,
}

impl Step for Script {
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect> {
        self.steps.send((events, now_ms)).unwrap();
        self.wakes.pop_front();
        self.effects.pop_front().unwrap_or_default()
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.wakes.front().copied().flatten()
    }
}

/// Answers by the path: `/panic`, `/wait` (until told), or with 200.
#[derive(Default)]
struct Cloud {
    called: Mutex<Vec<String>>,
    go: Arc<Notify>,
}

impl AzureCalls for Arc<Cloud> {
    fn call(&self, request: Request) -> BoxFuture<'static, Answer> {
        let Target::Path(path) = request.target else { panic!("a path") };
        self.called.lock().unwrap().push(path.clone());
        let go = Arc::clone(&self.go);
        Box::pin(async move {
            match path.as_str() {
                "/panic" => panic!("as asked"),
                "/wait" => go.notified().await,
                _ => {}
            }
            Answer::Reply(Box::new(Reply { status: 200, ..Reply::default() }))
        })
    }
}

impl KubernetesCalls for Arc<Cloud> {
    fn call(&self, call: KubernetesCall) -> BoxFuture<'static, KubernetesAnswer> {
        self.called.lock().unwrap().push(call.path);
        Box::pin(async {
            KubernetesAnswer::Reply { status: 201, retry_after_ms: None, body: None }
        })
    }
}

fn azure(call: u64, method: Method, path: &str) -> Effect {
    let target = Target::Path(path.into());
    let request = Request {
        method,
        target,
        condition: arm::Condition::None,
        body: None,
        correlation: "c".into(),
    };
    Effect::Azure { call: CallId(call), request }
}

fn kubernetes(call: u64) -> Effect {
    let request = KubernetesCall {
        method: "POST",
        path: "/events".into(),
        content_type: "application/json",
        body: json!({}),
    };
    Effect::Kubernetes { call: CallId(call), request }
}

struct Running {
    cloud: Arc<Cloud>,
    held: Held,
    notices: NoticeSink,
    sender: mpsc::Sender<Event>,
    steps: mpsc::UnboundedReceiver<(Vec<Event>, u64)>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Script>,
}

impl Running {
    fn start(effects: Vec<Vec<Effect>>, wakes: Vec<Option<u64>>) -> Self {
        let (steps_in, steps) = mpsc::unbounded_channel();
        let script = Script { effects: effects.into(), wakes: wakes.into(), steps: steps_in };
        let cloud = Arc::new(Cloud::default());
        let held = Held::always();
        let notices = NoticeSink::default();
        let runner = Runner {
            clock: Clock::start(),
            azure: Arc::new(Arc::clone(&cloud)),
            kubernetes: Arc::new(Arc::clone(&cloud)),
            held: held.clone(),
            notices: notices.clone(),
        };
        let (sender, receiver) = channel();
        let stop = CancellationToken::new();
        let (events, token) = (sender.clone(), stop.clone());
        let task = tokio::spawn(async move { runner.run(script, events, receiver, token).await });
        Self { cloud, held, notices, sender, steps, stop, task }
    }

    async fn tick(&self) {
        self.sender.send(Event::Tick).await.unwrap();
    }

    /// The events of the next steps, until so many have come.
    async fn events(&mut self, count: usize) -> Vec<Event> {
        let mut all = Vec::new();
        while all.len() < count {
            all.extend(self.steps.recv().await.expect("the loop goes on").0);
        }
        all
    }
}

fn status(events: &[Event], wanted: u64) -> Result<u16, TransportFault> {
    let answer = events.iter().find_map(|event| match event {
        Event::Azure { call, answer } if call.0 == wanted => Some(answer),
        _ => None,
    });
    match answer.expect("the call was answered") {
        Answer::Reply(reply) => Ok(reply.status),
        Answer::Fault(fault) => Err(fault.clone()),
    }
}

#[tokio::test]
async fn what_piled_up_is_one_step_and_time_is_the_clocks() {
    let mut running = Running::start(vec![], vec![]);
    for _ in 0..50 {
        // The loop has had no chance to run: this test has one thread.
        running.sender.try_send(Event::Tick).unwrap();
    }
    let (events, now_ms) = running.steps.recv().await.unwrap();
    assert_eq!(events.len(), 50);
    assert!(now_ms > 1_600_000_000_000);
}

#[tokio::test]
async fn every_call_is_answered_even_one_that_panics_while_another_waits() {
    let effects = vec![vec![
        azure(1, Method::Put, "/wait"),
        azure(2, Method::Put, "/panic"),
        azure(3, Method::Get, "/x"),
        kubernetes(4),
    ]];
    let mut running = Running::start(effects, vec![]);
    running.tick().await;
    let events = running.events(4).await;
    assert_eq!(status(&events, 3), Ok(200));
    assert!(matches!(status(&events, 2), Err(TransportFault::Ambiguous(_))));
    assert!(events.iter().any(|e| matches!(
        e,
        Event::KubernetesWritten {
            call: CallId(4),
            answer: KubernetesAnswer::Reply { status: 201, .. }
        }
    )));
    running.cloud.go.notify_one();
    assert_eq!(status(&running.events(1).await, 1), Ok(200));
}

#[tokio::test]
async fn without_the_lease_nothing_is_written_and_reads_go_on() {
    let effects = vec![vec![
        azure(1, Method::Delete, "/write"),
        azure(2, Method::Get, "/read"),
        kubernetes(3),
    ]];
    let mut running = Running::start(effects, vec![]);
    running.held.set_deadline_ms(1);
    running.tick().await;
    let events = running.events(4).await;
    let refused = TransportFault::NotSent("the lease is not held".into());
    assert_eq!(status(&events, 1), Err(refused));
    assert_eq!(status(&events, 2), Ok(200));
    assert!(
        events.iter().any(|e| matches!(
            e,
            Event::KubernetesWritten { answer: KubernetesAnswer::Fault(_), .. }
        ))
    );
    assert_eq!(*running.cloud.called.lock().unwrap(), ["/read"]);
}

/// A tick has the controller plan, which takes long where there are many Services.
#[tokio::test]
async fn a_wake_time_that_comes_is_a_step_without_a_tick() {
    let mut running = Running::start(vec![], vec![Some(0), None]);
    let (events, _) = running.steps.recv().await.expect("the loop goes on");
    assert_eq!(events, []);
}

#[test]
fn a_wake_up_that_was_lost_to_a_mistake_is_a_tick_after_the_longest_sleep() {
    assert_eq!(nap(Some(1_500), 1_000), (500, Woken::Time));
    assert_eq!(nap(Some(500), 1_000), (0, Woken::Time));
    assert_eq!(nap(None, 1_000), (LONGEST_SLEEP_MS, Woken::Late));
    assert_eq!(nap(Some(u64::MAX), 1_000), (LONGEST_SLEEP_MS, Woken::Late));
}

#[tokio::test]
async fn notices_reach_those_who_listen() {
    let notice = Notice {
        at_ms: 1,
        kind: NoticeKind::Planned,
        services: vec![],
        text: "one change".into(),
        changes: vec![],
        correlation: None,
    };
    let running = Running::start(vec![vec![Effect::Say(notice.clone())]], vec![]);
    let mut listener = running.notices.listen();
    running.tick().await;
    assert_eq!(listener.recv().await.unwrap(), notice);
}

#[tokio::test]
async fn a_shutdown_lets_calls_under_way_end() {
    let effects = vec![vec![azure(1, Method::Put, "/wait"), azure(2, Method::Get, "/x")]];
    let mut running = Running::start(effects, vec![]);
    running.tick().await;
    running.events(2).await;
    running.stop.cancel();
    tokio::task::yield_now().await;
    assert!(!running.task.is_finished());
    running.cloud.go.notify_one();
    running.task.await.unwrap();
    assert!(running.sender.send(Event::Tick).await.is_err());
}
