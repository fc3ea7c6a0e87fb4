"""A key-value server, and its backups. The operator puts this file into a ConfigMap; it needs only Python.

    python3 server.py serve             # GET, PUT and DELETE of /KEY; GET and PUT of / for all keys; GET of /-/version
    python3 server.py backup FILE       # writes all keys of the server at STORE_URL to a file
    python3 server.py restore FILE      # and back

The first replica takes the writes. The others follow it: they copy its keys every half second.
"""

import json
import os
import signal
import socket
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT = 8080
DATA = Path(os.environ.get("DATA", "/data/keys.json"))
STORE_URL = os.environ.get("STORE_URL", "")
lock = threading.Lock()


def write(path: Path, text: str) -> None:
    """Replace a file at once, so that a crash leaves the old or the new one."""
    new = path.with_suffix(".new")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read() -> dict[str, str]:
    found: dict[str, str] = json.loads(DATA.read_text()) if DATA.exists() else {}
    return found


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/-/version":
            self.answer(200, os.environ.get("VERSION", ""))
        elif self.path == "/":
            self.answer(200, json.dumps(read()))
        else:
            value = read().get(self.path[1:])
            self.answer(404 if value is None else 200, value or "")

    def do_PUT(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        with lock:
            keys = json.loads(text) if self.path == "/" else {**read(), self.path[1:]: text}
            write(DATA, json.dumps(keys))
        self.answer(200, "")

    def do_DELETE(self) -> None:
        with lock:
            write(DATA, json.dumps({key: value for key, value in read().items() if key != self.path[1:]}))
        self.answer(200, "")

    def answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())


def request(method: str, text: str | None = None) -> str:
    body = None if text is None else text.encode()
    with urllib.request.urlopen(urllib.request.Request(STORE_URL, body, method=method), timeout=10) as response:  # noqa: S310
        found: bytes = response.read()
    return found.decode()


def follow(stopped: threading.Event) -> None:
    while not stopped.wait(0.5):
        try:
            write(DATA, request("GET"))
        except OSError as error:
            print(f"cannot follow {STORE_URL}: {error}", flush=True)


def serve() -> None:
    server, stopped = ThreadingHTTPServer(("", PORT), Handler), threading.Event()

    def stop(*_: object) -> None:
        stopped.set()
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    if not socket.gethostname().endswith("-0"):
        threading.Thread(target=follow, args=(stopped,)).start()
    server.serve_forever()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            serve()
        case ["backup", file]:
            write(Path(file), request("GET"))
        case ["restore", file]:
            request("PUT", Path(file).read_text())
        case _:
            sys.exit(__doc__)
