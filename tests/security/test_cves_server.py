"""Published vulnerabilities of Kubernetes and of Python libraries, tried as attacks on a running API server.

A test is named after the vulnerability; its docstring says what the attacker does and what must not happen.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.conftest import ApiServer, started_apiserver
from tests.security.attacker import Attacker
from tests.unit.client.http import certificates

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MEBIBYTE = 1 << 20


@pytest.fixture
def attacker(apiserver: ApiServer) -> Attacker:
    return Attacker(apiserver)


def test_cve_2019_11253_yaml_alias_bomb(attacker: Attacker) -> None:
    """A few hundred bytes of aliases expand to billions of nodes: refused, without the memory for them."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join(f'*a{i - 1}' for _ in range(10))}]" for i in range(1, 10)]
    bomb = "\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: bomb}", *lines]).encode()
    before = attacker.resident()
    answer = attacker.ask("POST", CONFIG_MAPS, bomb, headers={"Content-Type": "application/yaml"})
    assert answer.status == 400
    assert attacker.resident() - before < 50 * MEBIBYTE


def test_cve_2019_11254_pathological_yaml(attacker: Attacker) -> None:
    """Text that makes naive YAML parsers quadratic or recursive: an answer, and a server that goes on."""
    bodies = [b"- " * 200_000, b"[" * 100_000, b"{" * 100_000, b'"' * 200_001, b"? " * 100_000, b"!" * 500_000]
    for body in bodies:
        answer = attacker.ask("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/yaml"})
        assert answer.status == 400, body[:2]
    assert attacker.is_alive()


def test_cve_2019_1002100_json_patch_amplification(attacker: Attacker) -> None:
    """A patch of very many operations, or of copies that double an object again and again: 413 or 422."""
    made = {"metadata": {"name": "patched"}, "data": {"a": "x" * 1000}}
    assert attacker.ask("POST", CONFIG_MAPS, made).status == 201
    headers = {"Content-Type": "application/json-patch+json"}
    many = [{"op": "add", "path": "/data/a", "value": "y"}] * 10_001
    assert attacker.ask("PATCH", f"{CONFIG_MAPS}/patched", many, headers=headers).status == 413
    grow = [{"op": "add", "path": "/metadata/annotations", "value": {"k": "x" * 100_000}}]
    grow += [{"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/labels/l{i}"} for i in range(9_000)]
    before = attacker.resident()
    assert attacker.ask("PATCH", f"{CONFIG_MAPS}/patched", grow, headers=headers).status in (413, 422)
    assert attacker.resident() - before < 100 * MEBIBYTE


def test_cve_2020_8552_many_different_bad_requests(attacker: Attacker) -> None:
    """Requests for ever new paths, groups and resources leave no metric series behind."""
    before = attacker.ask("GET", "/metrics").body.count(b"\n")
    for i in range(100):
        attacker.ask("GET", f"/apis/group{i}.example/v{i}/things{i}/name")
        attacker.ask("GET", f"/api/v1/namespaces/n{i}/things{i}/x/sub{i}")
        attacker.ask("GET", f"/nowhere/{i}")
        attacker.ask(f"METHOD{i}", f"{CONFIG_MAPS}/x")
    after = attacker.ask("GET", "/metrics").body.count(b"\n")
    assert after - before < 100


def test_cve_2024_27454_deeply_nested_json(attacker: Attacker) -> None:
    """A body of a million brackets crashed a JSON library: a clean 400, and a server that goes on."""
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        body = opening * 400_000 + b"1" + closing * 400_000
        assert attacker.ask("POST", CONFIG_MAPS, body).status in (400, 413)
        patch = {"Content-Type": "application/merge-patch+json"}
        assert attacker.ask("PATCH", f"{CONFIG_MAPS}/none", body, headers=patch).status in (400, 404, 413)
    assert attacker.is_alive()


def test_cve_2025_67221_deeply_nested_json_in_answers(attacker: Attacker) -> None:
    """What the server stores it can write again, in every format: an object cannot make reading its kind fail."""
    revisions = "/apis/apps/v1/namespaces/default/controllerrevisions"
    stored = 0
    for depth in (100, 240, 300, 1_000, 20_000):
        data = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"metadata":{"name":"nested-%d"},"revision":1,"data":%s}' % (depth, data)
        answer = attacker.ask("POST", revisions, body)
        assert answer.status in (201, 400), (depth, answer.body[:300])
        stored += answer.status == 201
    assert stored
    for media in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
        assert attacker.ask("GET", revisions, headers={"Accept": media}).status == 200
    assert attacker.ask("DELETE", revisions).status == 200
    assert attacker.is_alive()


def test_cve_2025_69223_gzip_bomb_to_the_server(attacker: Attacker) -> None:
    """A small compressed body that expands to gigabytes is not expanded."""
    bomb = gzip.compress(b" " * (200 * MEBIBYTE))
    before = attacker.resident()
    answer = attacker.ask("POST", CONFIG_MAPS, bomb, headers={"Content-Encoding": "gzip"})
    assert answer.status in (400, 415)
    assert attacker.resident() - before < 50 * MEBIBYTE


def test_cve_2023_44487_http2_rapid_reset(attacker: Attacker) -> None:
    """HTTP/2 is not offered, and its preface is not a request."""
    with attacker.connect("h2", "http/1.1") as connection:
        assert connection.selected_alpn_protocol() == "http/1.1"
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert re.match(rb"HTTP/1\.1 (400|505) ", connection.recv(100))
    assert attacker.is_alive()


def test_cve_2020_1747_yaml_that_constructs_python_objects(attacker: Attacker, tmp_path: Path) -> None:
    """Tags that make Python objects are refused and run nothing."""
    trace = tmp_path / "trace"
    body = f'!!python/object/apply:os.system ["touch {trace}"]'.encode()
    for text in (body, b"metadata: " + body, b"metadata: {name: x}\ndata:\n  a: " + body):
        answer = attacker.ask("POST", CONFIG_MAPS, text, headers={"Content-Type": "application/yaml"})
        assert answer.status == 400
    assert not trace.exists()


class _Redirecting(BaseHTTPRequestHandler):
    """A webhook that sends whoever calls it elsewhere."""

    elsewhere = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(302)
        self.send_header("Location", self.elsewhere)
        self.send_header("Content-Length", "15")
        self.end_headers()
        self.wfile.write(b"internal-secret")

    def log_message(self, *_: object) -> None:
        pass


class _Victim(BaseHTTPRequestHandler):
    reached: list[str] = []

    def do_GET(self) -> None:
        self.reached.append(self.path)
        self.send_response(200)
        self.end_headers()

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def redirecting(tmp_path: Path) -> Iterator[str]:
    """Address of a webhook that redirects to a victim on this machine."""
    victim = HTTPServer(("127.0.0.1", 0), _Victim)
    _Victim.reached.clear()
    hook = HTTPServer(("127.0.0.1", 0), _Redirecting)
    _Redirecting.elsewhere = f"http://127.0.0.1:{victim.server_port}/latest/meta-data"
    pair = certificates.server()
    (tmp_path / "pair.pem").write_bytes(pair.pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    hook.socket = context.wrap_socket(hook.socket, server_side=True)
    threads = [threading.Thread(target=server.serve_forever) for server in (victim, hook)]
    for thread in threads:
        thread.start()
    yield f"https://127.0.0.1:{hook.server_port}/"
    for server, thread in zip((victim, hook), threads, strict=True):
        server.shutdown()
        server.server_close()
        thread.join()


def test_cve_2020_8561_webhook_redirects(attacker: Attacker, redirecting: str) -> None:
    """A webhook answers 302 to an address of this machine: not followed; its body reaches neither client nor log."""
    bundle = base64.b64encode(certificates.authority().pem).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "redirect.example.dev",
        "clientConfig": {"url": redirecting, "caBundle": bundle},
        "rules": [rule],
        "objectSelector": {"matchLabels": {"cve": "2020-8561"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert attacker.ask("POST", hooks, {"metadata": {"name": "redirect"}, "webhooks": [hook]}).status == 201
    try:
        made = {"metadata": {"name": "redirected", "labels": {"cve": "2020-8561"}}}
        answer = attacker.ask("POST", CONFIG_MAPS, made)
    finally:
        attacker.ask("DELETE", f"{hooks}/redirect")
    assert answer.status == 500
    assert not _Victim.reached
    assert b"internal-secret" not in answer.body
    assert "internal-secret" not in attacker.server.log.read_text()


def test_cve_2020_8565_tokens_reach_no_log(attacker: Attacker) -> None:
    """Right and wrong tokens, in headers and bodies, of requests that fail in every way: none in the server's log."""
    secret = "very-secret-bearer-token-93c1"
    for path in (
        "/readyz",
        "/nowhere",
        f"{CONFIG_MAPS}/x",
        "/api/v1/namespaces/default/pods/x/log",
        "/%zz",
        "/metrics",
    ):
        for method in ("GET", "POST", "PATCH", "NONSENSE"):
            attacker.ask(method, path, b"{", token=secret)
            attacker.ask(method, path, b"{", headers={"X-Other": secret, "Impersonate-User": secret})
    review = {"spec": {"token": secret}}
    assert attacker.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).status == 201
    log = attacker.server.log.read_text()
    assert secret not in log
    assert attacker.server.token not in log


def test_ghsa_4xh5_jcj2_ch8q_empty_impersonation(attacker: Attacker) -> None:
    """Groups, uid or extra without a user name are refused: never answered as the one who asks."""
    for header in ("Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-scopes"):
        for user in ({}, {"Impersonate-User": ""}):
            answer = attacker.ask("GET", CONFIG_MAPS, headers={header: "x", **user})
            assert answer.status in (400, 403, 500), header
            assert answer.json["kind"] == "Status"


def test_cve_2021_25740_endpoints_of_other_namespaces(attacker: Attacker) -> None:
    """Who may edit a namespace may not write Endpoints or EndpointSlices, which could point into another one."""
    roles = attacker.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles").json["items"]
    for role in roles:
        if role["metadata"]["name"] not in ("edit", "admin", "system:aggregate-to-edit", "system:aggregate-to-admin"):
            continue
        for rule in role.get("rules") or ():
            writes = set(rule["verbs"]) & {"create", "update", "patch", "*"}
            resources = set(rule.get("resources") or ()) & {"endpoints", "endpointslices", "*"}
            assert not (writes and resources), (role["metadata"]["name"], rule)


def test_cve_2020_8554_a_service_that_takes_over_an_external_address(tmp_path: Path) -> None:
    """With DenyServiceExternalIPs nobody claims an address for a Service, neither a new one nor an existing one."""
    services = "/api/v1/namespaces/default/services"
    service = {"metadata": {"name": "taker"}, "spec": {"ports": [{"port": 443}]}}
    claim = {"externalIPs": ["203.0.113.7"]}
    with started_apiserver(tmp_path, ["--enable-admission-plugins", "DenyServiceExternalIPs"]) as server:
        attacker = Attacker(server)
        answer = attacker.ask("POST", services, {**service, "spec": {**service["spec"], **claim}})
        assert answer.status == 403
        assert answer.json["message"].endswith("Use of external IPs is denied by admission control")
        made = attacker.ask("POST", services, service)
        assert made.status == 201
        taken = {**made.json, "spec": {**made.json["spec"], **claim}}
        assert attacker.ask("PUT", f"{services}/taker", taken).status == 403
        for media in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
            patch = attacker.ask("PATCH", f"{services}/taker", {"spec": claim}, headers={"Content-Type": media})
            assert patch.status == 403
        assert "externalIPs" not in attacker.ask("GET", f"{services}/taker").json["spec"]


def test_cve_2026_11769_expressions_reach_nothing_outside(attacker: Attacker) -> None:
    """Expressions that would read files, environment or the network are no expressions of the language."""
    tries = [
        'readFile("/etc/passwd")',
        'env("HOME")',
        'http.get("http://127.0.0.1")',
        "__import__('os')",
        "self.__class__",
    ]
    for text in tries:
        policy = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "reads-files"},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ]
                },
                "validations": [{"expression": f"{text} == null"}],
            },
        }
        answer = attacker.ask("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", policy)
        assert answer.status == 422, (text, json.dumps(answer.json))
