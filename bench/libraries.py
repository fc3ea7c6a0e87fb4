"""Hand-written subsystems against the libraries that would replace them (docs/dev/dependencies.md).

    pip install --target peers h11 httptools wsproto prometheus-client croniter python-jsonpath jsonpatch jsonschema
    PYTHONPATH=src:peers python -m bench libraries

Libraries that are not installed are skipped.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import yaml

from bench.samples import deployment, pod
from bench.timing import compare
from ostinato.api.patch import json_patch
from ostinato.api.text.cron import parse_schedule
from ostinato.api.text.json_path import JsonPath
from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.http import websocket
from ostinato.http.request import parse_head
from ostinato.http.response import ResponseParser
from ostinato.metrics.families import Family, Sample
from ostinato.metrics.labelled import Description, LabelledMetrics
from ostinato.metrics.registry import Registry
from ostinato.server.schema.validation.check import compiled, fits_table

REQUEST = (
    b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: 127.0.0.1:6443\r\nUser-Agent: kubectl/v1.36\r\n"
    b"Accept: application/json\r\nContent-Type: application/json\r\nAuthorization: Bearer %032d\r\n"
    b"Content-Length: 0\r\n\r\n"
)
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\nAudit-Id: %032d\r\n"
    b"Date: Mon, 16 Nov 2026 10:11:12 GMT\r\nX-Kubernetes-Pf-Flowschema-Uid: 0b5c1b5e-4a6a-4c1f-9a2e-1f5a0c9b8d7e\r\n"
    b"Content-Length: 1000\r\n\r\n"
) + b"x" * 1000
EVENT = b"%x\r\n%b\r\n" % (800, b"x" * 800)
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["replicas"],
    "properties": {
        "replicas": {"type": "integer", "minimum": 0, "maximum": 1000},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "items": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 20}},
    },
}
NOW = datetime(2026, 11, 16, 10, 11, 12, tzinfo=UTC)

Contenders = dict[str, Callable[[], object]]


def main() -> None:
    for title, measure in (
        ("Parse a request", _requests),
        ("Parse a response of 1 kB", _responses),
        ("Receive a watch event of 800 bytes in a chunk", _chunks),
        ("Receive a WebSocket message of 1 kB", _frames),
        ("Increment a counter", _counters),
        ("Observe in a histogram of 12 buckets by label values", _histograms),
        ("Exposition of 1,000 counters and 100 histograms", _exposition),
        ("Next time of a cron schedule", _cron),
        ("JSONPath .spec.containers[*].image", _json_path),
        ("Replace by JSON patch", _json_patch),
        ("Validate an object against a schema", _schema),
        ("A Deployment as YAML", _yaml),
    ):
        contenders: Contenders = {}
        measure(contenders)
        compare(title, "ostinato", contenders)


def _peer(name: str) -> Any:  # Any: a module
    with suppress(ImportError):
        return import_module(name)
    return None


def _requests(contenders: Contenders) -> None:
    requests = [REQUEST % number for number in range(5000)]
    heads = [each[:-4] for each in requests]
    contenders["ostinato"] = _each(parse_head, heads)
    contenders["ostinato, fields seen before"] = lambda: parse_head(heads[0])
    if h11 := _peer("h11"):

        def by_h11(data: bytes) -> None:
            connection = h11.Connection(h11.SERVER)
            connection.receive_data(data)
            connection.next_event()

        contenders["h11"] = _each(by_h11, requests)
    if httptools := _peer("httptools"):
        contenders["httptools, collected"] = _each(lambda data: _Collected(httptools.HttpRequestParser, data), requests)


class _Collected:
    """What a user of httptools collects: names in lower case, the first value of each header, the body."""

    def __init__(self, parser: Any, data: bytes) -> None:
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        parser(self).feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.setdefault(name.decode().lower(), value.decode())

    def on_body(self, data: bytes) -> None:
        self.parts.append(data)


def _responses(contenders: Contenders) -> None:
    responses = [RESPONSE % number for number in range(1000)]

    def ours(data: bytes) -> None:
        response = ResponseParser()
        response.feed(data)
        response.take()

    contenders["ostinato"] = _each(ours, responses)
    if h11 := _peer("h11"):
        request = h11.Request(method="GET", target="/", headers=[("Host", "a")])

        def by_h11(data: bytes) -> None:
            connection = h11.Connection(h11.CLIENT)
            connection.send(request)
            connection.send(h11.EndOfMessage())
            connection.receive_data(data)
            while type(connection.next_event()) is not h11.EndOfMessage:
                pass

        contenders["h11"] = _each(by_h11, responses)
    if httptools := _peer("httptools"):
        contenders["httptools, collected"] = _each(
            lambda data: _Collected(httptools.HttpResponseParser, data), responses
        )


def _chunks(contenders: Contenders) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = ResponseParser()
    response.feed(head)

    def ours() -> None:
        response.feed(EVENT)
        response.take()

    contenders["ostinato"] = ours
    if h11 := _peer("h11"):
        connection = h11.Connection(h11.CLIENT)
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(head)
        connection.next_event()

        def by_h11() -> None:
            connection.receive_data(EVENT)
            while connection.next_event() is not h11.NEED_DATA:
                pass

        contenders["h11"] = by_h11


def _frames(contenders: Contenders) -> None:
    data = websocket.frame(websocket.BINARY, bytes(1024), b"abcd")
    reader = websocket.FrameReader(lambda _message: None)
    contenders["ostinato"] = lambda: reader.feed(data)
    if wsproto := _peer("wsproto.connection"):
        connection = wsproto.Connection(wsproto.ConnectionType.SERVER)

        def by_wsproto() -> None:
            connection.receive_data(data)
            for _ in connection.events():
                pass

        contenders["wsproto"] = by_wsproto


def _counters(contenders: Contenders) -> None:
    counts = {"found": 0}

    def ours() -> None:
        counts["found"] += 1

    metrics, labels = LabelledMetrics({}), {"verb": "GET", "code": "200"}
    contenders["ostinato"] = ours
    contenders["ostinato, by label values"] = lambda: metrics.count("requests_total", labels)
    if peer := _peer("prometheus_client"):
        counter = peer.Counter("a", "a", registry=peer.CollectorRegistry())
        labelled = peer.Counter("b", "b", ["verb", "code"], registry=peer.CollectorRegistry())
        contenders["prometheus-client"] = counter.inc
        contenders["prometheus-client, by label values"] = lambda: labelled.labels("GET", "200").inc()


def _histograms(contenders: Contenders) -> None:
    metrics, labels = LabelledMetrics({"seconds": Description("seconds", BOUNDS)}), {"verb": "GET", "code": "200"}
    contenders["ostinato"] = lambda: metrics.observe("seconds", 0.07, labels)
    if peer := _peer("prometheus_client"):
        histogram = peer.Histogram("a", "a", ["verb", "code"], buckets=BOUNDS, registry=peer.CollectorRegistry())
        contenders["prometheus-client"] = lambda: histogram.labels("GET", "200").observe(0.07)


def _exposition(contenders: Contenders) -> None:
    samples = [Sample("requests_total", {"verb": "GET", "name": f"n{number}"}, number) for number in range(1000)]
    metrics = LabelledMetrics({"seconds": Description("seconds", BOUNDS)})
    registry = Registry()
    registry.add(metrics.families)
    registry.add(lambda: [Family("requests_total", "counter", "requests", samples)])
    for number in range(100):
        metrics.observe("seconds", 0.07, {"name": f"n{number}"})
    contenders["ostinato"] = registry.text
    if peer := _peer("prometheus_client"):
        theirs = peer.CollectorRegistry()
        counter = peer.Counter("requests", "requests", ["verb", "name"], registry=theirs)
        histogram = peer.Histogram("seconds", "seconds", ["name"], buckets=BOUNDS, registry=theirs)
        for number in range(1000):
            counter.labels("GET", f"n{number}").inc(number)
        for number in range(100):
            histogram.labels(f"n{number}").observe(0.07)
        contenders["prometheus-client"] = lambda: peer.generate_latest(theirs)


def _cron(contenders: Contenders) -> None:
    schedule = parse_schedule("17 3 * * 1-5", "Etc/UTC")
    contenders["ostinato"] = lambda: schedule.next(NOW)
    contenders["ostinato, with parsing"] = lambda: parse_schedule("17 3 * * 1-5", "Etc/UTC").next(NOW)
    if peer := _peer("croniter"):
        contenders["croniter, with parsing"] = lambda: peer.croniter("17 3 * * 1-5", NOW).get_next(datetime)


def _json_path(contenders: Contenders) -> None:
    value, path = pod(), JsonPath(".spec.containers[*].image")
    contenders["ostinato"] = lambda: path.find(value)
    if peer := _peer("jsonpath"):
        theirs = peer.compile("$.spec.containers[*].image")
        contenders["python-jsonpath"] = lambda: theirs.findall(value)


def _json_patch(contenders: Contenders) -> None:
    value, patch = deployment(), [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    contenders["ostinato"] = lambda: json_patch(value, patch)
    if peer := _peer("jsonpatch"):
        contenders["jsonpatch"] = lambda: peer.apply_patch(value, patch)


def _schema(contenders: Contenders) -> None:
    value, table = {"replicas": 3, "mode": "a", "items": ["x"] * 10}, compiled(SCHEMA)
    contenders["ostinato"] = lambda: fits_table(table, value)
    if peer := _peer("jsonschema"):
        validator = peer.Draft202012Validator(SCHEMA)
        contenders["jsonschema"] = lambda: validator.is_valid(value)


def _yaml(contenders: Contenders) -> None:
    value = deployment()
    contenders["ostinato"] = lambda: encode_yaml(value)
    contenders["PyYAML, C"] = lambda: yaml.dump(value, Dumper=yaml.CSafeDumper)


def _each(run: Callable[[Any], object], values: list[bytes]) -> Callable[[], object]:
    """Return a function that runs with the next value at each call, so that caches of whole inputs do not help."""
    position = 0

    def step() -> object:
        nonlocal position
        position = position + 1 if position + 1 < len(values) else 0
        return run(values[position])

    return step
