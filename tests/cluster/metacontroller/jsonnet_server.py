"""Serves jsonnet functions as hooks: POST /NAME evaluates NAME.jsonnet with the request."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def serve(directory: Path, port: int) -> None:
    import _jsonnet

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                file = directory / f"{Path(self.path).name}.jsonnet"
                answer, status = _jsonnet.evaluate_file(str(file), tla_codes={"request": body}), 200
            except RuntimeError as error:
                answer, status = str(error), 500
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer.encode())

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
