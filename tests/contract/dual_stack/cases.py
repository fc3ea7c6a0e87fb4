"""The cases: Services that are created and changed, and what a client observes of them.

A case is a list of steps: `(verb, path, body)`. Of each answer the status code is observed, and either the message or
the fields that IP families are about. Addresses that the server has chosen are numbered by family.
"""

from __future__ import annotations

import http.client
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.contract.conversations import Server

PANIC: Final = [0, "connection closed"]
"""What is observed where kube-apiserver panics."""

V4, V6 = "10.96.0.0/16", "fd00:10:96::/112"
RANGES: Final = {"dual": f"{V4},{V6}", "dual-ipv6-first": f"{V6},{V4}", "ipv4": V4, "ipv6": V6}
"""`--service-cluster-ip-range` of the servers."""

PLACE: Final = "/api/v1/namespaces/default/services"
_ADDRESS: Final = re.compile(r"10\.96\.\d+\.\d+|fd00:10:96:[0-9a-f:]+")
_POLICIES: Final = (None, "SingleStack", "PreferDualStack", "RequireDualStack")
_FAMILIES: Final = (None, ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"])
_PORTS: Final = [{"port": 80}]
_A, _B = "10.96.0.77", "fd00:10:96::77"  # requested addresses

Step = tuple[str, str, Any]
Spec = dict[str, Any]


def _service(spec: Spec) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": _PORTS, **spec}}


def _fields(**fields: Any) -> Spec:
    return {name: value for name, value in fields.items() if value is not None}


def _create(spec: Spec, *, dry: bool = False) -> Step:
    return "POST", PLACE + ("?dryRun=All" if dry else ""), _service(spec)


def _patch(change: Spec) -> Step:
    return "PATCH", f"{PLACE}/s", {"spec": change}


def _put(spec: Spec) -> Step:
    return "PUT", f"{PLACE}/s", _service(spec)


def _text(spec: Spec) -> str:
    return json.dumps(spec, separators=(",", ":"))


_KINDS: Final[dict[str, Spec]] = {
    "": {},
    "headless": {"clusterIP": "None", "selector": {"a": "b"}},
    "headless without selector": {"clusterIP": "None"},
}
_STARTS: Final[dict[str, Spec]] = {
    "IPv4": {"ipFamilies": ["IPv4"]},
    "IPv6": {"ipFamilies": ["IPv6"]},
    "preferring both": {"ipFamilyPolicy": "PreferDualStack"},
    "requiring both": {"ipFamilyPolicy": "RequireDualStack"},
    "requiring both, IPv6 first": {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"]},
    "preferring both, given addresses": {"ipFamilyPolicy": "PreferDualStack", "clusterIPs": [_A, _B], "clusterIP": _A},
    "headless": {**_KINDS["headless"], "ipFamilies": ["IPv4"]},
    "headless with both": {**_KINDS["headless"], "ipFamilyPolicy": "RequireDualStack"},
    "headless without selector": _KINDS["headless without selector"],
    "ExternalName": {"type": "ExternalName", "externalName": "example.com"},
    "NodePort with both": {"type": "NodePort", "ipFamilyPolicy": "RequireDualStack"},
}
_CHANGES: Final[tuple[Spec, ...]] = (
    *({"ipFamilyPolicy": policy} for policy in _POLICIES),
    *({"ipFamilies": families} for families in _FAMILIES),
    *({"ipFamilyPolicy": policy, "ipFamilies": f} for policy, f in itertools.product(_POLICIES[1:], _FAMILIES[1:])),
    {"ipFamilyPolicy": "SingleStack", "ipFamilies": None},
    {"ipFamilyPolicy": "SingleStack", "ipFamilies": None, "clusterIPs": None},
    {"ipFamilyPolicy": "SingleStack", "clusterIPs": [_A]},
    {"ipFamilyPolicy": "SingleStack", "clusterIPs": [_A], "ipFamilies": ["IPv4"]},
    {"ipFamilyPolicy": "PreferDualStack", "clusterIPs": [_A], "ipFamilies": ["IPv4"]},
    {"ipFamilyPolicy": "SingleStack", "clusterIP": _B, "clusterIPs": [_B], "ipFamilies": ["IPv6"]},
    {"ipFamilyPolicy": "RequireDualStack", "clusterIPs": [_B, _A], "clusterIP": _B, "ipFamilies": ["IPv6", "IPv4"]},
    {"clusterIPs": [_A]},
    {"clusterIPs": None},
    {"clusterIP": None},
    {"clusterIP": None, "clusterIPs": None},
    {"clusterIP": None, "clusterIPs": None, "ipFamilies": None, "ipFamilyPolicy": None},
    {"clusterIP": "None", "clusterIPs": ["None"]},
    {"type": "ExternalName", "externalName": "example.com"},
    {"type": "ExternalName", "externalName": "example.com", "clusterIP": None, "clusterIPs": None},
    {"type": "ClusterIP", "externalName": None},
    {"type": "ClusterIP", "externalName": None, "ipFamilyPolicy": "RequireDualStack"},
    {"type": "ClusterIP", "externalName": None, "ipFamilies": ["IPv6"]},
    {"type": "NodePort"},
    {"selector": {"c": "d"}},
)
_REPLACEMENTS: Final[tuple[Spec, ...]] = (
    {},
    {"ipFamilyPolicy": "SingleStack"},
    {"ipFamilyPolicy": "PreferDualStack"},
    {"ipFamilyPolicy": "RequireDualStack"},
    {"ipFamilies": ["IPv6"]},
    {"ipFamilies": ["IPv4"]},
    {"clusterIP": "None"},
    {"type": "ExternalName", "externalName": "example.com"},
)
_ODD: Final[tuple[Spec, ...]] = (
    {"clusterIP": "fd00:10:96::1:0"},
    {"clusterIP": "fd00:10:97::1"},
    {"clusterIP": "fd00:10:96::"},
    {"clusterIP": "fd00:10:96::ffff"},
    {"clusterIP": "10.96.0.0"},
    {"clusterIP": "10.96.255.255"},
    {"clusterIP": "FD00:10:96::0A"},
    {"clusterIP": "fd00:0010:0096::a"},
    {"clusterIP": "fd00:10:96:0:0:0:0:a"},
    {"clusterIP": "fd00:00010:96::a"},
    {"clusterIP": "::ffff:10.96.0.9"},
    {"clusterIP": "fd00:10:96::a%eth0"},
    {"clusterIPs": [_A, _B]},
    {"clusterIP": _A, "clusterIPs": [_B, _A]},
    {"clusterIP": _A, "clusterIPs": [_A, "10.96.0.78"], "ipFamilyPolicy": "RequireDualStack"},
    {"clusterIP": _B, "clusterIPs": [_B, "fd00:10:96::78"], "ipFamilyPolicy": "RequireDualStack"},
    {"clusterIP": _A, "clusterIPs": [_A, _B, "10.96.0.78"], "ipFamilyPolicy": "RequireDualStack"},
    {"clusterIP": _A, "clusterIPs": [_A, "None"], "ipFamilyPolicy": "RequireDualStack"},
    {"clusterIP": "None", "clusterIPs": ["None", _B]},
    {"clusterIP": _A, "clusterIPs": [_A, "fd00:10:97::1"], "ipFamilyPolicy": "RequireDualStack"},
    {"clusterIP": _A, "clusterIPs": [_A, "fd00:10:96::1"], "ipFamilyPolicy": "RequireDualStack"},
    {"clusterIP": "10.96.0.1"},
    {"clusterIP": "fd00:10:96::1"},
    {"ipFamilies": ["IPv5"]},
    {"ipFamilies": ["IPv4", "IPv4"]},
    {"ipFamilies": ["IPv4", "IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack"},
    {"ipFamilies": []},
    {"ipFamilies": [""]},
    {"ipFamilyPolicy": "Both"},
    {"ipFamilyPolicy": ""},
    {"type": "ExternalName", "externalName": "example.com", "ipFamilies": ["IPv4"]},
    {"type": "ExternalName", "externalName": "example.com", "ipFamilyPolicy": "SingleStack"},
    {"type": "ExternalName", "externalName": "example.com", "clusterIP": _B},
    {"type": "NodePort", "ipFamilyPolicy": "RequireDualStack"},
    {"type": "LoadBalancer", "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6"]},
    {"type": "NodePort", "clusterIP": "None", "ipFamilyPolicy": "RequireDualStack"},
)


def cases(server: str) -> Iterator[tuple[str, Sequence[Step]]]:
    """The cases for a server, one of `RANGES`, by name."""
    yield (
        "objects of the server",
        [
            ("GET", f"{PLACE}/kubernetes", None),
            ("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", None),
            ("GET", "/apis/networking.k8s.io/v1/ipaddresses", None),
        ],
    )
    for kind, base in _KINDS.items():
        for policy, families in itertools.product(_POLICIES, _FAMILIES):
            spec = {**base, **_fields(ipFamilyPolicy=policy, ipFamilies=families)}
            yield f"create {kind} {_text(spec)}", [_create(spec)]
            if not kind:
                yield f"create dry {_text(spec)}", [_create(spec, dry=True)]
    for addresses in ([_A], [_B], [_A, _B], [_B, _A]):
        for policy, families in itertools.product(_POLICIES, _FAMILIES):
            given = {"clusterIP": addresses[0], "clusterIPs": addresses}
            spec = {**given, **_fields(ipFamilyPolicy=policy, ipFamilies=families)}
            yield f"create {_text(spec)}", [_create(spec)]
            if policy in (None, "RequireDualStack"):
                yield f"create dry {_text(spec)}", [_create(spec, dry=True)]
    for spec in _ODD:
        yield f"create {_text(spec)}", [_create(spec)]
    yield (
        "IPAddresses of a Service",
        [
            _create({"ipFamilyPolicy": "RequireDualStack", "clusterIP": _A, "clusterIPs": [_A, _B]}),
            ("GET", f"/apis/networking.k8s.io/v1/ipaddresses/{_A}", None),
            ("GET", f"/apis/networking.k8s.io/v1/ipaddresses/{_B}", None),
            _patch({"ipFamilyPolicy": "SingleStack"}),
            ("GET", f"/apis/networking.k8s.io/v1/ipaddresses/{_B}", None),
            _patch({"ipFamilyPolicy": "RequireDualStack", "clusterIPs": [_A, "fd00:10:96::78"]}),
            ("GET", "/apis/networking.k8s.io/v1/ipaddresses/fd00:10:96::78", None),
            ("DELETE", f"{PLACE}/s", None),
            ("GET", "/apis/networking.k8s.io/v1/ipaddresses/fd00:10:96::78", None),
            ("GET", f"/apis/networking.k8s.io/v1/ipaddresses/{_A}", None),
        ],
    )
    for start, spec in _STARTS.items() if server == "dual" else list(_STARTS.items())[:4]:
        for change in _CHANGES:
            yield f"{start}: patch {_text(change)}", [_create(spec), _patch(change)]
        for replacement in _REPLACEMENTS:
            yield f"{start}: put {_text(replacement)}", [_create(spec), _put(replacement)]
    steps = [
        _patch({"ipFamilyPolicy": "PreferDualStack"}),
        _patch({"ipFamilyPolicy": "SingleStack"}),
        _patch({"ipFamilyPolicy": "RequireDualStack"}),
        _patch({"type": "ExternalName", "externalName": "example.com"}),
        _patch({"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"}),
    ]
    yield "up, down, away and back", [_create({}), *steps]


def observe(server: Server, kind: str) -> dict[str, list[Any]]:
    """Play the cases for a server; return what is observed, by case."""
    seen: dict[str, list[Any]] = {}
    for name, steps in cases(kind):
        numbered: dict[str, str] = {}
        given = {match for _, _, body in steps for match in _ADDRESS.findall(json.dumps(body))}
        answers = [_ask(server, *step) for step in steps]
        seen[name] = [_observed(code, answer, given, numbered) for code, answer in answers]
        _ask(server, "DELETE", f"{PLACE}/s", None)
        for address in given:  # kube-apiserver leaves those of some Services that it refuses
            _ask(server, "DELETE", f"/apis/networking.k8s.io/v1/ipaddresses/{address}", None)
    return seen


def _ask(server: Server, verb: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if verb == "PATCH":
        headers["Content-Type"] = "application/merge-patch+json"
    try:
        connection, response = server.request(verb, path, headers, None if body is None else json.dumps(body))
    except http.client.RemoteDisconnected:
        return 0, {}
    try:
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _observed(code: int, answer: dict[str, Any], given: set[str], numbered: dict[str, str]) -> list[Any]:
    """The parts of an answer that the cases are about."""
    if not code:
        return PANIC

    def named(match: re.Match[str]) -> str:
        address = match[0]
        if address in given or address in ("10.96.0.1", "fd00:10:96::1"):
            return address
        family = "IPv6" if ":" in address else "IPv4"
        return numbered.setdefault(address, f"<{family}-{1 + sum(each[1:5] == family for each in numbered.values())}>")

    if answer.get("kind") == "Status":
        found: Any = [answer.get("status"), answer.get("message")]
    elif answer.get("kind") == "Service":
        names = ("type", "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        found = {name: answer["spec"][name] for name in names if name in answer["spec"]}
    elif answer.get("kind") == "IPAddress":
        found = {"labels": answer["metadata"]["labels"], **answer["spec"]}
    elif answer.get("kind") == "IPAddressList":
        found = [each["metadata"]["name"] for each in answer["items"]]
    else:
        found = answer["spec"]
    return [code, json.loads(_ADDRESS.sub(named, json.dumps(found)))]
