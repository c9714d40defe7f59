//! A watch's answer as lines.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use std::error::Error;

/// Longest line: an object of Kubernetes is at most some 1.5 MB in its store.
const LINE_CAP: usize = 32 << 20;

/// Reads an answer line by line.
#[derive(Debug)]
pub struct Lines<B> {
    body: B,
    buffer: BytesMut,
    searched: usize,
}

impl<B: Body<Data = Bytes, Error: Error + 'static> + Unpin> Lines<B> {
    /// The lines of a body.
    #[must_use]
    pub fn new(body: B) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line without its end; `None` when the answer is over. A last line without an end
    /// was cut off and is dropped.
    ///
    /// # Errors
    /// The connection broke, or a line is too long.
    pub async fn next(&mut self) -> Result<Option<BytesMut>, String> {
        loop {
            let fresh = &self.buffer[self.searched..];
            if let Some(at) = fresh.iter().position(|b| *b == b'\n') {
                let mut line = self.buffer.split_to(self.searched + at + 1);
                line.truncate(line.len() - 1);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_CAP {
                return Err(format!("a line is longer than {LINE_CAP} bytes"));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(e)) => {
                    return Err(format!("the connection broke: {}", crate::web::chain(&e)));
                }
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.buffer.extend_from_slice(&piece);
                    }
                }
            }
        }
    }
}
