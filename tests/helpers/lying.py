"""A server that says what no `recoup serve` says, or in no time: bytes, piece by piece."""

from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer
from types import SimpleNamespace

from scripted import running

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def sized(length):
    """The head of an answer of so many bytes."""
    return HEAD + b"Content-Length: %d\r\n\r\n" % length


@contextmanager
def lying(says):
    """Its `port`, what heads it `heard` and how many pieces, as `says` gives them, it `sent`."""
    seen = SimpleNamespace(sent=0, heard=b"")

    class Handler(StreamRequestHandler):
        def handle(self):
            while (line := self.rfile.readline()).strip():
                seen.heard += line
            try:
                for piece in says():
                    self.wfile.write(piece)
                    seen.sent += 1
            except OSError:  # nobody listens any more
                pass

    class Server(ThreadingTCPServer):
        daemon_threads, allow_reuse_address = True, True

    server = Server(("127.0.0.1", 0), Handler)
    seen.port = server.server_address[1]
    with running(server):
        yield seen
