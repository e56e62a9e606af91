"""Requests to a server, by the standard library alone."""

import http.client
import json

from waiting import LIMIT


class Answered:
    """An answer: its status, headers and body."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.content = response.read()

    @property
    def said(self):
        return json.loads(self.content)

    def __repr__(self):
        return f"Answered({self.status}, {self.content[:300]!r})"


class Calls:
    """Whoever has a token, at a server."""

    def __init__(self, server, token=None):
        self.server, self.token = server, server.token if token is None else token

    def __call__(self, method, path, body=None, headers=None, token=None):
        """What a request is answered; `body` as JSON, or bytes as they are."""
        given = self.token if token is None else token
        said = {"Authorization": f"Bearer {given}"} if given else {}
        if body is not None:
            said["Content-Type"] = "application/json"
        said |= headers or {}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=LIMIT)
        try:
            connection.request(method, path, content, {k: v for k, v in said.items() if v})
            return Answered(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path, body, **headers):
        return self(
            "POST", path, body, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
