"""A server between client and server that does what it is asked for and loses some answers."""

import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from waiting import LIMIT


def handler(behind, loses, heard):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
            connection = HTTPConnection("127.0.0.1", behind, timeout=LIMIT)
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            content = response.read()
            connection.close()
            heard(response.status)
            if "/v1/proof" not in self.path and loses():  # after it was done
                self.close_connection = True
                return
            self.send_response(response.status)
            self.send_header("Content-Type", response.getheader("Content-Type") or "")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do

        def log_message(self, *_):
            pass

    return Handler


@contextmanager
def losing(behind, every=2, heard=lambda status: None):
    """The port of one before the server at port `behind`: of its answers every n-th arrives.

    `heard` is told the status of each.
    """
    count, lock = [0], threading.Lock()

    def loses():
        with lock:
            count[0] += 1
            return count[0] % every != 0

    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(behind, loses, heard))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
