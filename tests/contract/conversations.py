"""Replay recorded API conversations against a server, and compare its answers with those of a kube-apiserver.

A scenario is a list of HTTP steps (api/scenarios/*.yaml); api/recorded/*.json has kube-apiserver's answers, normalised:
what varies from run to run (uids, resource versions, times, random suffixes, addresses, continue tokens) is a
placeholder, numbered in order of appearance, so that equality between two of them still counts. api/README.md
describes the keys of a scenario.
"""

from __future__ import annotations

import contextlib
import difflib
import http.client
import itertools
import json
import os
import re
import ssl
import threading
import time
import urllib.parse
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent / "api"
IGNORED = ["metadata.managedFields.*.time", "metadata.selfLink"]
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
VERBS = ("get", "post", "put", "patch", "delete", "watch", "collect", "sleep", "head", "options", "until")
_serial = itertools.count()


class Server:
    def __init__(self, url: str, token: str | None, ca: str | None):
        self.url = urllib.parse.urlsplit(url)
        self.token = token
        if self.url.scheme == "https":
            self.tls = ssl.create_default_context(cafile=ca)
            if ca is None:
                self.tls.check_hostname = False
                self.tls.verify_mode = ssl.CERT_NONE

    def connect(self, timeout: float = 30.0) -> http.client.HTTPConnection:
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=timeout)

    def request(self, method, path, headers, body, timeout=30.0):
        connection = self.connect(timeout)
        if "Authorization" not in headers and self.token:
            headers = {**headers, "Authorization": f"Bearer {self.token}"}
        connection.request(method, path, body=body, headers={k: v for k, v in headers.items() if v})
        try:
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise


class Watch(threading.Thread):
    """Reads watch events in the background until enough have arrived or the time is up."""

    def __init__(self, server, path, headers, want, seconds):
        super().__init__(daemon=True)
        self.server, self.path, self.headers = server, path, headers
        self.want, self.seconds = want, seconds
        self.status, self.events = None, []
        self.end, self.response = None, None
        self.ready = threading.Event()

    def run(self):
        connection = None
        try:
            connection, response = self.server.request("GET", self.path, self.headers, None, timeout=self.seconds)
            self.response = response
            self.status = response.status
            self.ready.set()
            if self.status != 200:
                self.events.append(decode(response.read()))
                return
            while len(self.events) < self.want:
                line = response.readline()
                if not line:
                    self.end = "closed by the server"
                    break
                event = decode(line)
                # Periodic bookmarks depend on the clock; only the one that ends a streaming list counts.
                if isinstance(event, dict) and event.get("type") == "BOOKMARK" and b"initial-events-end" not in line:
                    continue
                self.events.append(event)
        except TimeoutError:
            self.end = "still open"
        except (OSError, http.client.HTTPException):
            self.end = "broken"
        finally:
            self.ready.set()
            if self.response is not None:
                self.response.close()
            if connection is not None:
                connection.close()


def decode(data: bytes):
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def pick(value, path: str):
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part.replace("~1", ".")]
    return value


class Normaliser:
    """Replaces the volatile values of one scenario with numbered placeholders."""

    TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b")
    UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
    # Resource versions inside messages: the server's current one, and an object's.
    NOW = re.compile(r"(too old resource version: \d+ \(|Too large resource version: \d+, current: )\d+")
    RECORD = re.compile(r"(ResourceVersion in record \(|ResourceVersion in the precondition \()(\d+)")
    TOKEN_VOLUME = re.compile(r"\bkube-api-access-[b-z2-9]{5}\b")
    AGE = re.compile(r"^(\d+[smhdy])+$")
    AGE_COLUMNS = ("Age", "Last Seen", "First Seen", "Last Schedule", "Duration")
    YEARS = re.compile(r"\b\d+y(\d+d)?\b")  # since a moment that a step names: other every day

    # The error of a rejected patch quotes the whole object: only the reason counts.
    QUOTED = re.compile(r'Invalid value: "(\{(?:[^"\\]|\\.)*\})"')

    def __init__(self, namespace: str):
        self.namespace = namespace
        self.seen: dict[str, dict[str, str]] = {}

    def name(self, kind: str, value: str) -> str:
        table = self.seen.setdefault(kind, {})
        return table.setdefault(value, f"<{kind}-{len(table) + 1}>")

    def key(self, key: str) -> str:
        key = self.UID.sub(lambda m: self.name("uid", m[0]), key)
        return self.TOKEN_VOLUME.sub("kube-api-access-<suffix>", key).replace(self.namespace, "<ns>")

    def ages(self, table):
        columns = [c.get("name") for c in table.get("columnDefinitions") or []]
        for row in table.get("rows") or []:
            cells = row.get("cells") or []
            for i, (column, cell) in enumerate(zip(columns, cells, strict=False)):
                if not isinstance(cell, str):
                    continue
                if column in self.AGE_COLUMNS and self.AGE.match(cell):
                    cells[i] = "<age>"
                else:
                    cells[i] = self.YEARS.sub("<years>", cell)

    def generated(self, value):
        """Number the generated names in a value."""
        if isinstance(value, list):
            for item in value:
                self.generated(item)
        elif isinstance(value, dict):
            prefix, name = value.get("generateName"), value.get("name")
            if isinstance(prefix, str) and isinstance(name, str) and name.startswith(prefix):
                self.name("generated", name)
            for item in value.values():
                self.generated(item)

    def collection(self, value):
        """Replace the resourceVersion of a list or bookmark, without a number.

        It is the server's, not an object's: any other client's write changes it. Only pages of one list are compared.
        """
        if value.get("type") == "BOOKMARK" and isinstance(value.get("object"), dict):
            inner = value["object"]
            if isinstance(inner.get("metadata"), dict) and inner["metadata"].get("resourceVersion"):
                return {
                    **value,
                    "object": {**inner, "metadata": {**inner["metadata"], "resourceVersion": "<bookmark-rv>"}},
                }
            return value
        meta = value.get("metadata")
        if not (isinstance(value.get("items"), list) or isinstance(value.get("rows"), list)) or not isinstance(
            meta, dict
        ):
            return value
        version = meta.get("resourceVersion")
        if not isinstance(version, str) or version in ("", "0"):
            return value
        pages = self.seen.setdefault("page-rv", {})
        shown = self.name("page-rv", version) if meta.get("continue") or version in pages else "<list-rv>"
        return {**value, "metadata": {**meta, "resourceVersion": shown}}

    def __call__(self, value, key=""):
        if isinstance(value, dict):
            value = self.collection(value)
            out = {self.key(k): self(v, k) for k, v in value.items()}
            # A generated name keeps its prefix and loses its random suffix.
            prefix, name = value.get("generateName"), value.get("name")
            if isinstance(prefix, str) and isinstance(name, str) and name.startswith(prefix):
                out["name"] = self.name("generated", name)
            if "managedFields" in out and isinstance(out["managedFields"], list):
                out["managedFields"] = sorted(out["managedFields"], key=lambda m: json.dumps(m, sort_keys=True))
            if value.get("kind") == "Table":
                self.ages(out)
            return out
        if isinstance(value, list):
            return [self(v, key) for v in value]
        if key in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and value > 0:
            return self.name("nodePort", str(value))
        if isinstance(value, str):
            if key in ("resourceVersion", "sinceResourceVersion") and value not in ("", "0") and value[:1] != "<":
                return self.name("rv", value)
            if key == "continue" and value:
                return "<continue>"
            if key in ("clusterIP", "clusterIPs") and value not in ("None", ""):
                return self.name("ip", value)
            if key == "token":
                return "<token>"
            for kind, table in self.seen.items():
                if kind == "generated":
                    for real, placeholder in table.items():
                        value = value.replace(real, placeholder)
            value = self.QUOTED.sub(
                lambda m: "Invalid value: <object>" if '\\"resourceVersion\\"' in m[1] else m[0], value
            )
            value = self.UID.sub(lambda m: self.name("uid", m[0]), value)
            value = self.TIME.sub("<time>", value)
            value = self.NOW.sub(lambda m: m[1] + "<now>", value)
            value = self.RECORD.sub(lambda m: m[1] + self.name("rv", m[2]), value)
            value = self.TOKEN_VOLUME.sub("kube-api-access-<suffix>", value)
            value = self.seen.get("ip", {}).get(value, value)
            return value.replace(self.namespace, "<ns>")
        return value


def drop(value, path: list[str]):
    if not path:
        return
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        if not rest and head.isdigit() and int(head) < len(value):
            value[int(head)] = "<ignored>"  # the other items keep their places
            return
        targets = value if head == "*" else ([value[int(head)]] if head.isdigit() and int(head) < len(value) else [])
        for item in targets:
            drop(item, rest)
    elif isinstance(value, dict):
        head = head.replace("~1", ".")
        if head == "*":
            for item in value.values():
                drop(item, rest)
        elif not rest:
            value.pop(head, None)
        elif head in value:
            drop(value[head], rest)


def settled(retry: dict, code: int, body) -> bool:
    """Whether an answer is the one that a step with `retry` waits for."""
    if "code" in retry and code != retry["code"]:
        return False
    if "path" in retry:
        try:
            return str(pick(body, retry["path"])) == str(retry["is"])
        except (KeyError, IndexError, TypeError, ValueError):
            return False
    return True


def keep(value, paths: list[str]):
    out = {}
    for path in paths:
        try:
            out[path] = pick(value, path)
        except (KeyError, IndexError, TypeError, ValueError):
            out[path] = "<absent>"
    return out


def substitute(value, variables):
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda m: str(variables[m[1]]), value)
    if isinstance(value, list):
        return [substitute(v, variables) for v in value]
    if isinstance(value, dict):
        return {substitute(k, variables): substitute(v, variables) for k, v in value.items()}
    return value


def run_scenario(server: Server, scenario: dict, ignore_always: list[str]):
    """Run the steps; return one normalised answer per step."""
    namespace = f"c-{(int(time.time()) * 10**4 + next(_serial) * 10 + os.getpid() % 10) % 10**10:010d}"  # unique
    variables = {"ns": namespace}
    normalise = Normaliser(namespace)
    watches: dict[str, Watch] = {}
    answers = []

    def call(method, path, headers, body):
        connection, response = server.request(method, path, headers, body)
        try:
            data = decode(response.read())
        finally:
            connection.close()
        if isinstance(data, str) and (response.getheader("Content-Type") or "").startswith("application/yaml"):
            data = yaml.load(data, yaml.BaseLoader)  # every scalar a string
        return response, data

    if scenario.get("namespace", True):
        json_type = {"Content-Type": "application/json"}
        call(
            "POST",
            "/api/v1/namespaces",
            json_type,
            json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        )
        call(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts",
            json_type,
            json.dumps({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        )
    for raw in scenario["steps"]:
        verb = next(v for v in VERBS if v in raw)
        try:
            step = substitute(raw, variables)
        except KeyError as missing:
            answers.append({"step": str(raw.get(verb)), "error": f"no value for {missing}"})
            continue
        label = f"{verb.upper()} {raw[verb]}"
        if verb == "sleep":
            time.sleep(float(step["sleep"]))
            continue
        headers = {"Accept": step.get("accept", "application/json"), **step.get("headers", {})}
        if verb == "watch":
            watch = Watch(server, step["watch"], headers, step.get("events", 1), step.get("seconds", 5))
            watches[step["name"]] = watch
            watch.start()
            watch.ready.wait(5)
            time.sleep(0.2)
            continue
        if verb == "collect":
            watch = watches[step["collect"]]
            watch.join(watch.seconds + 1)
            answer = {"code": watch.status, "body": list(watch.events)}
            if step.get("show_end"):
                answer["end"] = watch.end
            if step.get("show_headers") and watch.response:
                answer["headers"] = {h: normalise(watch.response.getheader(h)) for h in step["show_headers"]}
        elif verb == "until":
            # Poll a path until a value appears: for asynchronous effects.
            deadline = time.time() + step.get("seconds", 10)
            while True:
                response, body = call("GET", step["until"], headers, None)
                try:
                    if str(pick(body, step["path"])) == str(step["is"]):
                        break
                except (KeyError, IndexError, TypeError, ValueError):
                    pass
                if time.time() > deadline:
                    break
                time.sleep(0.05)
            answer = {"code": response.status, "body": body}
        else:
            body = step.get("body")
            if verb == "patch":
                headers["Content-Type"] = PATCH_TYPES.get(step["type"], step["type"])
            elif body is not None:
                headers["Content-Type"] = step.get("type", "application/json")
            if body is not None and not isinstance(body, str):
                body = json.dumps(body)
            if step.get("fill"):
                body = body.replace("<fill>", "x" * step["fill"])
            try:
                retry = step.get("retry")
                deadline = time.time() + (retry or {}).get("seconds", 10)
                while True:
                    response, data = call(verb.upper(), step[verb], headers, body)
                    if not retry or settled(retry, response.status, data) or time.time() > deadline:
                        break
                    time.sleep(0.1)
            except (OSError, http.client.HTTPException) as error:
                answers.append({"step": label, "error": type(error).__name__})
                continue
            answer = {"code": response.status, "body": data}
            if step.get("show_headers"):
                answer["headers"] = {h: normalise(response.getheader(h)) for h in step["show_headers"]}
        for name, path in step.get("save", {}).items():
            with contextlib.suppress(KeyError, IndexError, TypeError, ValueError):
                variables[name] = pick(answer["body"], path)
        # Dropped before numbering: ignored values take no placeholder (except for generated names).
        normalise.generated(answer["body"])
        for path in ignore_always + scenario.get("ignore", []) + step.get("ignore", []):
            bodies = answer["body"] if verb == "collect" else [answer["body"]]
            for one in bodies:
                drop(one, path.split("."))
                if isinstance(one, dict) and "object" in one:
                    drop(one["object"], path.split("."))
                for item in one.get("items") or [] if isinstance(one, dict) else []:
                    drop(item, path.split("."))
        for path in step.get("sort", []):
            with contextlib.suppress(KeyError, IndexError, TypeError, ValueError, AttributeError):
                pick(answer["body"], path).sort(key=lambda item: json.dumps(item, sort_keys=True))
        answer["body"] = normalise(answer["body"])
        if step.get("only") is not None:
            answer["body"] = (
                [keep(b, step["only"]) for b in answer["body"]]
                if verb == "collect"
                else keep(answer["body"], step["only"])
            )
        answers.append({"step": label, **answer})
    for path in scenario.get("cleanup", []):
        call("DELETE", substitute(path, variables), {}, None)
    if scenario.get("namespace", True):
        call("DELETE", f"/api/v1/namespaces/{namespace}", {}, None)
    return answers


def groups() -> list[str]:
    return [file.stem for file in sorted((HERE / "scenarios").glob("*.yaml"))]


def scenarios(group: str, place: Path = HERE, *, recorded: bool = True) -> list[tuple[dict, list[dict]]]:
    """The scenarios of a group, each with kube-apiserver's recorded answers, if any."""
    answers = json.loads((place / "recorded" / f"{group}.json").read_text()) if recorded else {}
    found = yaml.safe_load((place / "scenarios" / f"{group}.yaml").read_text())
    return [(scenario, answers.get(scenario["name"].replace(" ", "-"), [])) for scenario in found]


def check(server: Server, scenario: dict, expected: list[dict]) -> tuple[int, str]:
    """The number of answers that are as recorded, and the differences."""
    try:
        answers = run_scenario(server, scenario, IGNORED)
    except (OSError, http.client.HTTPException, KeyError) as error:
        answers = [{"error": repr(error)}]
    good, differences = 0, []
    for i, want in enumerate(expected):
        got = json.loads(json.dumps(answers[i])) if i < len(answers) else None
        if got == want:
            good += 1
            continue
        a, b = (json.dumps(x, indent=1, sort_keys=True).splitlines() for x in (want, got))
        differences.append(f"--- {scenario['name']} step {i + 1}: {want.get('step')}")
        differences += difflib.unified_diff(a, b, "kube-apiserver", "this server", n=2, lineterm="")
    return good, "\n".join(differences)
