# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A server that speaks the part of hawkBit's Direct Device Integration API that clients of packs use.

It checks what a client says, and can behave as servers, proxies and networks do: answers in chunks, files
without ranges, connections that end in the middle.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class File:
    name: str
    content: bytes


@dataclass
class Module:
    """A software module: its type, and its files."""

    part: str
    files: list[File]


@dataclass
class Action:
    """A deployment to the device."""

    number: int
    modules: list[Module]
    feedback: list[dict[str, Any]] = field(default_factory=list)
    cancelling: bool = False
    update: str = "forced"

    @property
    def closed(self) -> str | None:
        """How it ended: success, failure, cancelled; None while it is open."""
        for entry in self.feedback:
            if entry["status"]["execution"] == "closed":
                return str(entry["status"]["result"]["finished"])
        return None

    @property
    def details(self) -> list[str]:
        return [text for entry in self.feedback for text in entry["status"]["details"]]


class Hawkbit(ThreadingHTTPServer):
    """One device, ``player`` of the tenant DEFAULT."""

    def __init__(self, port: int = 0, authorization: str = "GatewayToken secret") -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.authorization = authorization
        self.action: Action | None = None
        self.attributes: dict[str, str] | None = None
        self.unknown: list[str] = []  # requests that make no sense
        self.polls = 0
        self.asked: list[tuple[int, int]] = []  # first and last bytes of files
        self.ranges = True
        self.chunked = False
        self.cut_after: int | None = None  # bytes of the next long file
        self.scheme = "http"

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def deploy(self, content: bytes, number: int, name: str = "model.tmodel", part: str = "bApp") -> Action:
        """With a file beside it that is no pack, and a module of firmware."""
        files = [File("README.txt", b"nothing"), File(name, content)]
        self.action = Action(number, [Module("os", [File("zephyr.bin", bytes(64))]), Module(part, files)])
        return self.action


@contextmanager
def serving(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Hawkbit]:
    with Hawkbit(port) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            server.scheme = "https"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hawkbit

    BASE = "/DEFAULT/controller/v1/player"

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""

    def _url(self, path: str) -> str:
        return f"{self.server.scheme}://{self.headers['Host']}{self.BASE}{path}"

    def _answer(self, content: Any) -> None:
        text = json.dumps(content, indent=1).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/hal+json")
        if self.server.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for start in range(0, len(text), 37):
                part = text[start : start + 37]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def _refuse(self, status: int) -> None:
        self.server.unknown.append(f"{self.command} {self.path}")
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _allowed(self) -> bool:
        if self.headers.get("Authorization") == self.server.authorization:
            return True
        self._refuse(401)
        return False

    def do_GET(self) -> None:
        action = self.server.action
        path = self.path.removeprefix(self.BASE)
        if not self._allowed():
            return
        if path == "":
            self.server.polls += 1
            self._answer(self._base())
        elif action and path == f"/deploymentBase/{action.number}?c=-2129030598":
            self._answer(self._deployment(action))
        elif action and path == f"/cancelAction/{action.number}":
            self._answer({"id": str(action.number), "cancelAction": {"stopId": str(action.number)}})
        elif action and (found := re.fullmatch(r"/softwaremodules/(\d+)/artifacts/(.+)", path)):
            module = action.modules[int(found[1])]
            self._send_file(next(file for file in module.files if file.name == found[2]))
        else:
            self._refuse(404)

    def _base(self) -> dict[str, Any]:
        action, links = self.server.action, {}
        if action and action.closed is None:
            if action.cancelling:
                links["cancelAction"] = {"href": self._url(f"/cancelAction/{action.number}")}
            else:
                links["deploymentBase"] = {
                    "href": self._url(f"/deploymentBase/{action.number}?c=-2129030598")
                }
        if self.server.attributes is None:
            links["configData"] = {"href": self._url("/configData")}
        return {"config": {"polling": {"sleep": "00:00:01"}}, "_links": links}

    def _deployment(self, action: Action) -> dict[str, Any]:
        def described(place: int, file: File) -> dict[str, Any]:
            link = self._url(f"/softwaremodules/{place}/artifacts/{file.name}")
            links = {"download-http": {"href": link}, "md5sum-http": {"href": f"{link}.MD5SUM"}}
            return {"filename": file.name, "hashes": {"md5": "x"}, "size": len(file.content), "_links": links}

        chunks = [
            {
                "part": module.part,
                "version": "1.0",
                "name": f'module "{place}"',
                "artifacts": [described(place, file) for file in module.files],
            }
            for place, module in enumerate(action.modules)
        ]
        deployment = {"download": action.update, "update": action.update, "chunks": chunks}
        history = {"status": "RUNNING", "messages": ["waiting", {"deep": [[[1, 2, {"id": "no"}]]]}]}
        return {"id": str(action.number), "deployment": deployment, "actionHistory": history}

    def _send_file(self, file: File) -> None:
        content, status, first = file.content, 200, 0
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and self.server.ranges:
            status, first = 206, int(asked[1])
            self.server.asked.append((first, int(asked[2])))
            content = content[first : int(asked[2]) + 1]
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if status == 206:
            last = first + len(content) - 1
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(file.content)}")
        self.end_headers()
        cut = self.server.cut_after
        if cut is not None and cut < len(content):
            content, self.server.cut_after, self.close_connection = content[:cut], None, True
        try:
            self.wfile.write(content)
        except ConnectionError:
            self.close_connection = True

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _done(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_PUT(self) -> None:
        body = self._body()
        if not self._allowed():
            pass
        elif self.path != f"{self.BASE}/configData" or body["mode"] != "merge":
            self._refuse(400)
        else:
            self.server.attributes = body["data"]
            self._done()

    def do_POST(self) -> None:
        body, action = self._body(), self.server.action
        kind = "cancelAction" if action and action.cancelling else "deploymentBase"
        if not self._allowed():
            pass
        elif action is None or self.path != f"{self.BASE}/{kind}/{action.number}/feedback":
            self._refuse(404)
        elif body["id"] != str(action.number):
            self._refuse(400)
        else:
            action.feedback.append(body)
            if body["status"]["execution"] == "rejected":
                action.cancelling = False
            self._done()
