"""Published vulnerabilities of proxies, tried as attacks on a running API server by whoever owns a backend or a node.

Backends listen on an address of this machine that is not loopback: a real Pod's is not either.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from ostinato.plane.node.registration.machine_info import address
from tests.conftest import ApiServer
from tests.security.attacker import Answer, Attacker

HOST = address()
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\nSec-WebSocket-Version: 13\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

pytestmark = pytest.mark.skipif(HOST.startswith("127."), reason="this machine has no address but loopback")


class Backend:
    """Answers each connection with the same bytes, and keeps all that it is sent."""

    def __init__(self, answer: bytes, host: str = HOST, context: ssl.SSLContext | None = None) -> None:
        """A backend that switches protocols sends back what it is sent then."""
        self.answer = answer
        self.heads: list[bytes] = []
        self.late: list[bytes] = []  # what came after the answer, until the end of each connection
        self.ended = threading.Semaphore(0)
        self._context = context
        self._socket = socket.create_server((host, 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(30)
        try:
            connection = plain if self._context is None else self._context.wrap_socket(plain, server_side=True)
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    data = connection.recv(65536)
                    if not data:
                        return
                    head += data
                self.heads.append(head)
                connection.sendall(self.answer)
                late = b""
                while data := connection.recv(65536):
                    late += data
                    if self.answer.startswith(b"HTTP/1.1 101"):
                        connection.sendall(data)
                self.late.append(late)
        except OSError:
            plain.close()
        finally:
            self.ended.release()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def attacker(apiserver: ApiServer) -> Attacker:
    return Attacker(apiserver)


@pytest.fixture
def backends() -> Iterator[Callable[..., Backend]]:
    made: list[Backend] = []

    def make(*args: Any, **more: Any) -> Backend:
        made.append(Backend(*args, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def pod(attacker: Attacker) -> str:
    """A Pod at the address of this machine."""
    attacker.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "c", "image": "i"}]}
    attacker.ask("POST", PODS, {"metadata": {"name": "evil"}, "spec": spec})
    status = {"status": {"podIP": HOST, "podIPs": [{"ip": HOST}]}}
    assert attacker.ask("PATCH", f"{PODS}/evil/status", status, headers=MERGE).status == 200
    return "evil"


def node_at(attacker: Attacker, host: str, port: int, kind: str = "InternalIP") -> None:
    """Have the status of a node say that its agent listens there."""
    attacker.ask("POST", "/api/v1/nodes", {"metadata": {"name": "evil"}})
    status = {
        "addresses": [{"type": kind, "address": host}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    answer = attacker.ask("PATCH", "/api/v1/nodes/evil/status", {"status": status}, headers=MERGE)
    assert answer.status == 200, answer.body


def tunnel(attacker: Attacker, path: str, more: str = UPGRADE, then: bytes = b"", ends: bytes = b"") -> bytes:
    """What the server sends on a connection that asks for an upgrade, and then sends something else.

    All until it says how much that is, or until it `ends` in some way.
    """
    with attacker.connect() as connection:
        token = f"Authorization: Bearer {attacker.server.token}\r\n"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{token}{more}\r\n".encode())
        said = b""
        while b"\r\n\r\n" not in said:
            data = connection.recv(65536)
            assert data, said
            said += data
        if then:
            with contextlib.suppress(OSError):
                connection.sendall(then)
        head, _, body = said.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        while not (said.endswith(ends) if ends else length is not None and len(body) >= int(length[1])):
            data = connection.recv(65536)
            if not data:
                break
            said += data
            body += data
        return said


def status_of(said: bytes) -> int:
    return int(said.split(b" ", 2)[1])


def test_cve_2018_1002105_a_failed_upgrade_leaves_no_tunnel(
    attacker: Attacker, pod: str, backends: Callable[..., Backend]
) -> None:
    """A backend refuses the upgrade; what the client sends next must not reach it over the server's connection."""
    refusing = backends(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
    smuggled = b"GET /exec/kube-system/victim/c?command=id HTTP/1.1\r\nHost: x\r\n\r\n"
    said = tunnel(attacker, f"{PODS}/{pod}:{refusing.port}/proxy/x", then=smuggled)
    assert status_of(said) == 403
    assert said.endswith(b"\r\n\r\nno")
    assert refusing.ended.acquire(timeout=30)
    assert refusing.late in ([], [b""])
    for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"):
        ignoring = backends(answer)
        said = tunnel(attacker, f"{PODS}/{pod}:{ignoring.port}/proxy/x", then=smuggled)
        assert status_of(said) == 500
        assert b"invalid upgrade response" in said
        assert ignoring.ended.acquire(timeout=30)
        assert ignoring.late in ([], [b""])


def test_cve_2018_1002105_the_server_never_speaks_for_itself_in_a_tunnel(
    attacker: Attacker, pod: str, backends: Callable[..., Backend]
) -> None:
    """An upgrade that succeeds is a tunnel to the backend alone: bytes go both ways, and no credentials with them."""
    echoing = backends(SWITCH + b"first")
    more = b"GET /api/v1/secrets HTTP/1.1\r\n\r\n"
    said = tunnel(attacker, f"{PODS}/{pod}:{echoing.port}/proxy/x", then=more, ends=b"first" + more)
    assert said == SWITCH + b"first" + more
    assert attacker.server.token.encode() not in echoing.heads[0]


@pytest.mark.parametrize("what", ["pod", "node"])
def test_cve_2018_1002102_a_backend_cannot_send_the_server_elsewhere(
    attacker: Attacker, pod: str, backends: Callable[..., Backend], tmp_path: Path, what: str
) -> None:
    """A backend, or the kubelet of a node, answers with a redirection to another host, which must never be asked."""
    victim = backends(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    elsewhere = f"HTTP/1.1 302 Found\r\nLocation: http://{HOST}:{victim.port}/x\r\nContent-Length: 0\r\n\r\n".encode()
    if what == "pod":
        answer = attacker.ask("GET", f"{PODS}/{pod}:{backends(elsewhere).port}/proxy/x")
        assert answer.status == 302  # it is the client's decision
    else:
        node_at(attacker, HOST, backends(elsewhere, context=tls(tmp_path, attacker)).port)
        bound(attacker, "evil")
        answer = attacker.ask("GET", f"{PODS}/on-evil/log?container=c")
        assert answer.status == 500
        assert "redirects forbidden" in answer.json["message"]
        said = tunnel(attacker, f"{PODS}/on-evil/exec?command=id&container=c&stdout=1")
        assert status_of(said) == 500
        assert b"invalid upgrade response: status code 302" in said
    assert victim.heads == []


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\nLocation: http://127.0.0.1:1/x\r\n\r\n",
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://kubernetes/api/v1/secrets\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ],
)
def test_cve_2020_8559_the_answer_to_an_upgrade_cannot_lead_the_client_elsewhere(
    attacker: Attacker, pod: str, backends: Callable[..., Backend], answer: bytes
) -> None:
    """A compromised node answers an upgrade with a redirection, or with a protocol that nobody asked for: an error."""
    said = tunnel(attacker, f"{PODS}/{pod}:{backends(answer).port}/proxy/x")
    assert status_of(said) == 500
    assert b"location" not in said.lower()


def test_cve_2022_3294_a_node_at_the_address_of_the_api_server_is_refused(attacker: Attacker) -> None:
    """Whoever may write nodes/status and ask nodes/proxy has the server ask itself, in its own name."""
    own = attacker.port
    loopback = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "::ffff:127.0.0.1", "::1", "localhost"]
    for host in [*loopback, "0.0.0.0", "0", "::", HOST, f"::ffff:{HOST}", socket.gethostname()]:
        node_at(attacker, host, own, "Hostname")
        for name in ("evil", f"https:evil:{own}"):
            answer = attacker.ask("GET", f"/api/v1/nodes/{name}/proxy/api/v1/secrets")
            assert answer.status == 400, (host, answer.body)
            assert answer.json["message"] in ("address not allowed", f"lookup {host}: no such host")
    node_at(attacker, "10.0.0.1", 443)  # the cluster IP of the Service `kubernetes`
    answer = attacker.ask("GET", "/api/v1/nodes/evil/proxy/api/v1/secrets")
    assert (answer.status, answer.json["message"]) == (400, "address not allowed")


def test_cve_2022_3294_a_pod_at_the_address_of_the_api_server_is_refused(attacker: Attacker, pod: str) -> None:
    answer = attacker.ask("GET", f"{PODS}/https:{pod}:{attacker.port}/proxy/api/v1/secrets")
    assert (answer.status, answer.json["message"]) == (400, "address not allowed")


@pytest.mark.parametrize("host", ["169.254.169.254", "fe80::1", "224.0.0.1", "ff02::1", "255.255.255.255"])
def test_cve_2020_8562_link_local_and_multicast_addresses_are_refused(attacker: Attacker, host: str) -> None:
    """A node or a Pod at the address of a cloud's metadata service, or of nobody in particular."""
    node_at(attacker, host, 10250)
    for name in ("evil", "http:evil:80"):
        answer = attacker.ask("GET", f"/api/v1/nodes/{name}/proxy/latest/meta-data")
        assert (answer.status, answer.json["message"]) == (400, "address not allowed")


def test_cve_2022_3294_only_the_checked_address_of_a_node_is_dialed(
    attacker: Attacker, backends: Callable[..., Backend], tmp_path: Path
) -> None:
    """The address that is checked does not answer; the next one of the node is loopback."""
    local = backends(
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlocal", host="127.0.0.1", context=tls(tmp_path, attacker)
    )
    node_at(attacker, "unused", local.port)
    addresses = [{"type": "InternalIP", "address": HOST}, {"type": "Hostname", "address": "127.0.0.1"}]
    attacker.ask("PATCH", "/api/v1/nodes/evil/status", {"status": {"addresses": addresses}}, headers=MERGE)
    answer = attacker.ask("GET", "/api/v1/nodes/evil/proxy/x")
    assert answer.status == 503
    assert local.heads == []


def test_cve_2022_3294_the_identity_shown_to_nodes_is_worth_nothing_elsewhere(
    attacker: Attacker, backends: Callable[..., Backend], tmp_path: Path
) -> None:
    """A node that takes the server's certificate for its own use: it is nobody at the API server."""
    kubelet = backends(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", context=tls(tmp_path, attacker))
    node_at(attacker, HOST, kubelet.port)
    assert attacker.ask("GET", "/api/v1/nodes/evil/proxy/x").status == 200
    state = attacker.server.ca.parent
    context = ssl.create_default_context(cafile=str(attacker.server.ca))
    context.load_cert_chain(state / "apiserver-kubelet-client.crt", state / "apiserver-kubelet-client.key")
    stolen = Attacker(attacker.server)
    stolen.tls = context
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    asked = stolen.ask("POST", review, {}, token="", headers={"Authorization": ""})
    assert asked.json["status"]["userInfo"]["username"] == "kube-apiserver-kubelet-client"
    assert "system:masters" not in asked.json["status"]["userInfo"]["groups"]
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/configmaps", "/api/v1/pods"):
        assert stolen.ask("GET", path, headers={"Authorization": ""}).status == 403
    assert stolen.ask("GET", "/api/v1/nodes", headers={"Authorization": ""}).status == 200


def test_credentials_do_not_reach_a_backend(attacker: Attacker, pod: str, backends: Callable[..., Backend]) -> None:
    """What proves who the client is, or says whom it acts as, is for the server and for nobody behind it."""
    plain = backends(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    headers = {
        "Proxy-Authorization": "hidden",
        "Impersonate-User": "jane",
        "Impersonate-Group": "system:masters",
        "Impersonate-Uid": "hidden",
        "Impersonate-Extra-Key": "hidden",
        "X-Remote-User": "hidden",
        "X-Remote-Group": "hidden",
        "X-Remote-Extra-Key": "hidden",
        "Cookie": "theirs=1",
        "X-Mine": "1",
    }
    assert attacker.ask("GET", f"{PODS}/{pod}:{plain.port}/proxy/x", headers=headers).status == 200
    head = plain.heads[0].decode().lower()
    names = {line.partition(":")[0] for line in head.split("\r\n")[1:] if line}
    assert {"cookie", "x-mine"} <= names
    assert "x-forwarded-for: 127.0.0.1\r\n" in head
    assert not [name for name in names if name.startswith(("impersonate", "x-remote", "authorization", "proxy-auth"))]
    assert "hidden" not in head
    assert attacker.server.token not in head


def test_a_token_in_the_protocols_of_a_websocket_does_not_reach_a_backend(
    attacker: Attacker, pod: str, backends: Callable[..., Backend]
) -> None:
    echoing = backends(SWITCH)
    token = base64.urlsafe_b64encode(attacker.server.token.encode()).decode().rstrip("=")
    offered = f"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token}, chat\r\n"
    with attacker.connect() as connection:
        path = f"{PODS}/{pod}:{echoing.port}/proxy/x"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{UPGRADE}{offered}\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 101")
    head = echoing.heads[0].decode().lower()
    assert "sec-websocket-protocol: chat\r\n" in head
    assert token.lower() not in head


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
def test_upgrades_pass_through_to_pods_byte_by_byte(
    attacker: Attacker, pod: str, backends: Callable[..., Backend], protocol: str
) -> None:
    fields = f"Upgrade: {protocol}\r\nConnection: Upgrade\r\nX-Own: 1\r\n\r\n"
    answer = b"HTTP/1.1 101 Switching Protocols\r\n" + fields.encode() + b"\x00\xff"
    there = backends(answer)
    more = UPGRADE.replace("websocket", protocol)
    sent = bytes(range(256))
    said = tunnel(attacker, f"{PODS}/{pod}:{there.port}/proxy/x", more=more, then=sent, ends=sent)
    assert said == answer + sent
    assert there.ended.acquire(timeout=30)  # both connections end with one of them


def test_upgrades_to_nodes_need_create(attacker: Attacker, backends: Callable[..., Backend], tmp_path: Path) -> None:
    """A WebSocket begins with a GET, but runs commands: the right to read nodes/proxy is not enough."""
    kubelet = backends(SWITCH + b"first", context=tls(tmp_path, attacker))
    node_at(attacker, HOST, kubelet.port)
    said = tunnel(attacker, "/api/v1/nodes/evil/proxy/exec/ns/p/c", then=b"more", ends=b"firstmore")
    assert said == SWITCH + b"firstmore"
    roles = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}
    attacker.ask("POST", f"{roles}/clusterroles", {"metadata": {"name": "node-reader"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "node-reader"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}
    binding = {"metadata": {"name": "node-reader"}, "roleRef": reference, "subjects": [subject]}
    attacker.ask("POST", f"{roles}/clusterrolebindings", binding)
    plain = attacker.ask("GET", "/api/v1/nodes/evil/proxy/x", headers={"Impersonate-User": "reader"})
    assert plain.status != 403
    before = len(kubelet.heads)
    said = tunnel(attacker, "/api/v1/nodes/evil/proxy/exec/ns/p/c", UPGRADE + "Impersonate-User: reader\r\n")
    assert status_of(said) == 403
    assert len(kubelet.heads) == before


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * (2 << 20) + b"\r\n\r\n",
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_refused(
    attacker: Attacker, pod: str, backends: Callable[..., Backend], answer: bytes
) -> None:
    told = attacker.ask("GET", f"{PODS}/{pod}:{backends(answer).port}/proxy/x")
    assert told.status == 503
    assert told.json["message"].startswith("error trying to reach service: ")


@pytest.mark.parametrize("body", [b"Content-Length: 9\r\n\r\nok", b"Transfer-Encoding: chunked\r\n\r\n9\r\nok"])
def test_an_answer_that_breaks_off_does_not_look_whole(
    attacker: Attacker, pod: str, backends: Callable[..., Backend], body: bytes
) -> None:
    cut = backends(b"HTTP/1.1 200 OK\r\n" + body)
    threading.Thread(target=lambda: (cut.ended.acquire(timeout=1), cut.close()), daemon=True).start()
    with attacker.connect() as connection:
        token = f"Authorization: Bearer {attacker.server.token}\r\nConnection: close\r\n"
        connection.sendall(f"GET {PODS}/{pod}:{cut.port}/proxy/x HTTP/1.1\r\nHost: x\r\n{token}\r\n".encode())
        said = connection.recv(65536)
        assert b"\r\nTransfer-Encoding: chunked\r\n" in said or b"\r\nContent-Length: 9\r\n" in said
        assert not said.endswith(b"0\r\n\r\n")


def test_an_unrequested_protocol_switch_is_an_error(
    attacker: Attacker, pod: str, backends: Callable[..., Backend]
) -> None:
    answer = attacker.ask("GET", f"{PODS}/{pod}:{backends(SWITCH + b'evil').port}/proxy/x")
    assert answer.status == 500
    assert answer.json["message"] == 'backend tried to switch protocol "websocket" when "" was requested'


def test_informational_responses_are_skipped_up_to_a_limit(
    attacker: Attacker, pod: str, backends: Callable[..., Backend]
) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    last = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    answer = attacker.ask("GET", f"{PODS}/{pod}:{backends(interim + last).port}/proxy/x")
    assert answer == Answer(200, b"ok")
    assert attacker.ask("GET", f"{PODS}/{pod}:{backends(interim * 100 + last).port}/proxy/x").status == 503


def tls(directory: Path, attacker: Attacker) -> ssl.SSLContext:
    """The serving certificate of the node `evil`, as the cluster's authority signs it: its key is the attacker's."""
    issuer = x509.load_pem_x509_certificate(attacker.server.ca.read_bytes())
    issuer_key: Any = serialization.load_pem_private_key(attacker.server.ca.with_suffix(".key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "system:node:evil")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(issuer.not_valid_after_utc)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (directory / "evil.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "evil.pem")
    return context


def bound(attacker: Attacker, node: str) -> None:
    """A Pod that runs on a node, as its status says."""
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    attacker.ask("POST", PODS, {"metadata": {"name": f"on-{node}"}, "spec": spec})
    running = {"name": "c", "image": "i", "imageID": "i", "ready": True, "restartCount": 0}
    running["state"] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status = json.loads(json.dumps({"status": {"phase": "Running", "containerStatuses": [running]}}))
    assert attacker.ask("PATCH", f"{PODS}/on-{node}/status", status, headers=MERGE).status == 200
