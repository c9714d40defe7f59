//! The kubectl plugin finds the leading pod and forwards a port to it: an API server that speaks
//! the port-forward WebSocket stands in front of the emulated one.

use crate::support::{Emulators, Process, ballast, http, outcome, wait_for};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

/// Paths of port-forwards that were asked for.
type Asked = Arc<Mutex<Vec<String>>>;

/// What a port-forward leads to.
#[derive(Clone, Debug)]
enum Pod {
    /// This address. Where no socket listens at it, the pod does not serve the port.
    At(String),
    /// The API server refuses with this status.
    Refused(u16, &'static str),
}

type Place = Arc<Mutex<Pod>>;

/// One port-forward: frames begin with their channel, 0 is the port's data and 1 its errors.
#[allow(clippy::result_large_err, reason = "the type is the library's")]
async fn forward(stream: TcpStream, pod: String, asked: Asked) {
    let mut path = String::new();
    let protocol = |request: &Request, mut response: Response| {
        path = request.uri().to_string();
        response
            .headers_mut()
            .insert("sec-websocket-protocol", "v4.channel.k8s.io".parse().unwrap());
        Ok(response)
    };
    let mut socket = accept_hdr_async(stream, protocol).await.unwrap();
    let port: u16 = path.rsplit("ports=").next().unwrap().parse().unwrap();
    asked.lock().unwrap().push(path);
    let [low, high] = port.to_le_bytes();
    for channel in [0, 1] {
        socket.send(Message::binary(vec![channel, low, high])).await.unwrap();
    }
    let Ok(mut pod) = TcpStream::connect(&pod).await else {
        let mut text = vec![1];
        text.extend(b"connection refused in the pod");
        socket.send(Message::binary(text)).await.unwrap();
        let _ = socket.close(None).await;
        // A socket closed with unread bytes resets the connection, and what was sent is lost.
        while let Some(Ok(_)) = socket.next().await {}
        return;
    };
    let mut buffer = vec![0; 16 << 10];
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) if bytes.first() == Some(&0) => {
                    pod.write_all(&bytes[1..]).await.unwrap();
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            read = pod.read(&mut buffer) => match read {
                Ok(0) | Err(_) => {
                    let _ = socket.close(None).await;
                    return;
                }
                Ok(n) => {
                    let mut bytes = vec![0];
                    bytes.extend(&buffer[..n]);
                    socket.send(Message::binary(bytes)).await.unwrap();
                }
            },
        }
    }
}

/// An API server with a kubelet behind it: what is no port-forward goes to the emulated one.
async fn serve(socket: TcpListener, kube: String, pod: Place, asked: Asked) {
    loop {
        let (mut stream, _) = socket.accept().await.unwrap();
        let (kube, pod) = (kube.clone(), Arc::clone(&pod));
        let asked = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut head = [0; 1_024];
            let read = stream.peek(&mut head).await.unwrap_or(0);
            let line = String::from_utf8_lossy(&head[..read]).into_owned();
            if line.lines().next().is_some_and(|line| line.contains("/portforward")) {
                let pod = pod.lock().unwrap().clone();
                return match pod {
                    Pod::At(address) => forward(stream, address, asked).await,
                    Pod::Refused(code, message) => {
                        let _ = stream.read(&mut head).await;
                        let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                            "status": "Failure", "message": message, "code": code});
                        let body = body.to_string();
                        let length = body.len();
                        let answer = format!(
                            "HTTP/1.1 {code} No\r\ncontent-type: application/json\r\n\
                             content-length: {length}\r\n\r\n{body}"
                        );
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                };
            }
            let mut server = TcpStream::connect(&kube).await.unwrap();
            // A connection for each request, so that a port-forward comes on one of its own.
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => return,
                }
            }
            head.truncate(head.len() - 2);
            head.extend(b"connection: close\r\n\r\n");
            server.write_all(&head).await.unwrap();
            let _ = copy_bidirectional(&mut stream, &mut server).await;
        });
    }
}

/// The emulators, with that API server in front, whose kubeconfig is given.
fn place() -> (Emulators, Runtime, String, Place, Asked) {
    let emulators = Emulators::start();
    let runtime = Runtime::new().unwrap();
    let socket = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let (pod, asked) = (Arc::new(Mutex::new(Pod::Refused(404, ""))), Asked::default());
    let serving = serve(socket, emulators.kube.clone(), Arc::clone(&pod), Arc::clone(&asked));
    runtime.spawn(serving);
    let text = std::fs::read_to_string(emulators.path("kubeconfig")).unwrap();
    let front = emulators.path("front").display().to_string();
    std::fs::write(&front, text.replace(&emulators.kube, &address)).unwrap();
    (emulators, runtime, front, pod, asked)
}

/// As kubectl calls a plugin.
fn plugin(words: &[&str]) -> Command {
    let mut command = ballast();
    command.arg0("kubectl-ballast").args(words);
    command
}

#[test]
fn the_plugin_asks_the_leading_pod_through_a_port_forward() {
    let (emulators, _runtime, front, pod, asked) = place();
    let (code, _, err) = outcome(plugin(&["status", "--kubeconfig", &front]).output().unwrap());
    assert!(code != 0 && err.contains("Lease kube-system/ballast does not exist"), "{err}");
    let words = emulators.words(&["run", "--port", "0"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut controller = Process::start_logging(&words);
    let pages = controller.address();
    emulators.serve("web");
    // The pod is gone, may not be reached, or does not listen.
    let history = || outcome(plugin(&["history", "--kubeconfig", &front]).output().unwrap());
    let refusals = [
        (
            Pod::Refused(404, "pods \"vm\" not found"),
            "refused with HTTP 404: pods \"vm\" not found. It is the holder of Lease kube-system/",
        ),
        (
            Pod::Refused(403, "pods \"vm\" is forbidden"),
            "is forbidden. Grant the verbs get and create on pods/portforward in namespace kube-",
        ),
        (Pod::At("127.0.0.1:1".to_owned()), "10271 failed: connection refused in the pod"),
    ];
    for (trouble, told) in refusals {
        *pod.lock().unwrap() = trouble.clone();
        let (code, _, err) = history();
        assert!(
            code != 0 && err.contains("no history from pod kube-system/"),
            "{trouble:?}: {err}"
        );
        assert!(err.contains(told), "{trouble:?}: {err}");
    }
    *pod.lock().unwrap() = Pod::At(pages);
    let status = ["status", "--kubeconfig", &front];
    let (code, out, err) = outcome(plugin(&status).output().unwrap());
    assert!(code == 0 && out.contains("Leader: this process"), "{out}{err}");
    assert!(out.contains("default/web"), "{out}");
    let history = ["history", "web", "--kubeconfig", &front, "--leader-port", "7"];
    let (code, out, err) = outcome(plugin(&history).output().unwrap());
    assert!(code == 0 && out.contains("default/web was created"), "{out}{err}");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ballast";
    let (_, lease) = http(&emulators.kube, "GET", lease, None);
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap();
    let host = holder.rsplit_once('_').unwrap().0;
    let paths = asked.lock().unwrap().clone();
    let path = format!("/api/v1/namespaces/kube-system/pods/{host}/portforward?");
    assert!(paths.iter().all(|asked| asked.starts_with(&path)), "{paths:?}");
    assert!(paths.iter().any(|asked| asked.ends_with("ports=10271")), "{paths:?}");
    assert!(paths.iter().any(|asked| asked.ends_with("ports=7")), "{paths:?}");
    // The console stays open.
    let console = ["console", "--no-open", "--kubeconfig", &front];
    let mut console = Process::start(&console);
    let address = console.address();
    let address = address.trim_end_matches(['/', ';']).to_owned();
    let status = wait_for("the status through the console's port", || {
        let (code, status) = http(&address, "GET", "/status", None);
        (code == 200).then_some(status)
    });
    assert!(matches!(status["services"], Value::Array(_)), "{status}");
    assert_eq!(console.interrupt(), 0);
    assert_eq!(controller.terminate(), 0);
}
