"""Servers for the scenarios of admission plugins: their options, and the backend of the image policy."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ostinato.server.access.authority import Authority
from ostinato.world import World

HERE = Path(__file__).resolve().parent / "admission"


def groups() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "groups.yaml").read_text())
    return found


@contextlib.contextmanager
def options(group: str, place: Path) -> Iterator[list[str]]:
    """The options of the server of a group, by kube-apiserver's names, while its backend runs."""
    wanted = groups()[group]
    found = [f"--enable-admission-plugins={','.join(wanted['enable'])}"] if "enable" in wanted else []
    found += [f"--disable-admission-plugins={','.join(wanted['disable'])}"] if "disable" in wanted else []
    with contextlib.ExitStack() as stack:
        if "configuration" in wanted:
            text = (HERE / "configurations" / wanted["configuration"]).read_text()
            if group.startswith("image_policy"):
                text = text.replace("${kubeconfig}", str(stack.enter_context(backend(place))))
                text = text.replace("${default_allow}", str(group.endswith("open")).lower())
            file = place / "admission.yaml"
            file.write_text(text)
            found.append(f"--admission-control-config-file={file}")
        yield found


@contextlib.contextmanager
def backend(place: Path) -> Iterator[Path]:
    """A backend that decides by image names; yields its kubeconfig."""
    (place / "backend").mkdir(mode=0o700)
    authority = Authority(World.real(), place / "backend")
    pair = authority.server("backend", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Decision)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kubeconfig = place / "backend.kubeconfig"
    cluster = {"certificate-authority": str(authority.files.certificate)}
    cluster["server"] = f"https://127.0.0.1:{server.server_port}/review"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": "backend-token"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    try:
        yield kubeconfig
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Decision(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        images = [each["image"] for each in json.loads(data)["spec"]["containers"]]
        if self.headers.get("Authorization") != "Bearer backend-token":
            self._answer(401, {})
        elif failing := next((image for image in images if image.startswith("fail-")), ""):
            self._answer(int(failing.removeprefix("fail-")), {})
        elif any("nonsense" in image for image in images):
            self._answer(200, ["nonsense"])
        else:
            denied = next((image for image in images if "deny" in image), "")
            status: dict[str, Any] = {"allowed": not denied, "auditAnnotations": {"seen": ",".join(images)}}
            if denied and "silent" not in denied:
                status["reason"] = f"{denied} is not allowed"
            review = json.loads(data)
            self._answer(200, {"apiVersion": review["apiVersion"], "kind": review["kind"], "status": status})

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
