//! Connections without the PROXY protocol's header.

use bytes::{Buf, BytesMut};
use health::wire::{Header, MOST, header};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Accepts connections that may begin with a PROXY header.
pub(super) struct Stripping(pub(super) TcpListener);

impl axum::serve::Listener for Stripping {
    type Io = Stripped;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = axum::serve::Listener::accept(&mut self.0).await;
        (Stripped { stream, state: State::Open(BytesMut::new()) }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection whose header, if it has one, is never read by who serves it.
#[derive(Debug)]
pub(super) struct Stripped {
    stream: TcpStream,
    state: State,
}

#[derive(Debug)]
enum State {
    /// What has come, which does not tell yet whether there is a header and where it ends.
    Open(BytesMut),
    /// What came after the header and was not read yet.
    Known(BytesMut),
}

impl Stripped {
    /// Reads until the header is known, and takes it off.
    fn poll_header(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let State::Open(begun) = &mut self.state {
            match header(begun) {
                Header::Length(length) => {
                    begun.advance(length);
                    self.state = State::Known(std::mem::take(begun));
                    break;
                }
                Header::Refused(why) => {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                Header::Partial => {}
            }
            let mut room = [0; MOST];
            let mut piece = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                // The other side has closed: who reads sees what it sent, and then the end.
                self.state = State::Known(std::mem::take(begun));
                break;
            }
            begun.extend_from_slice(piece.filled());
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Stripped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_header(context))?;
        if let State::Known(rest) = &mut self.state
            && !rest.is_empty()
        {
            let count = rest.len().min(into.remaining());
            into.put_slice(&rest.split_to(count));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Stripped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
