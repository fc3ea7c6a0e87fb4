"""The text format of the audit log, as a kube-apiserver writes it; the expected lines are recorded."""

from __future__ import annotations

from pathlib import Path

from tests.unit.server.audit.auditing import Scene, audited

from ostinato.server.request import Request

ADMIN = r'user="admin" groups="\"system:masters\",\"system:authenticated\"" '
RANGES = "/api/v1/namespaces/default/limitranges"


def _lines(place: Path, path: str, query: str = "", **headers: str) -> list[str]:
    async def test(scene: Scene) -> None:
        told = {"audit-id": "y", "user-agent": "curl/7.88.1", "authorization": "Bearer admin"}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request("GET", path, query, told)
        request.remote = "127.0.0.1"
        await scene.server.handle(request)

    text = audited(place, test, format="legacy").log.read_text()
    return [line.partition(" ")[2] for line in text.splitlines()]


def _line(stage: str, method: str, who: str, rest: str) -> str:
    return f'AUDIT: id="y" stage="{stage}" ip="127.0.0.1" method="{method}" {who}{rest}'


def test_a_request_is_two_lines(tmp_path: Path) -> None:
    rest = 'as="<self>" asgroups="<lookup>" user-agent="curl/7.88.1" namespace="<none>" uri="/version" response='
    assert _lines(tmp_path, "/version") == [
        _line("RequestReceived", "get", ADMIN, f'{rest}"<deferred>"'),
        _line("ResponseComplete", "get", ADMIN, f'{rest}"200"'),
    ]


def test_client_input_is_quoted_and_cannot_start_a_line(tmp_path: Path) -> None:
    _, line = _lines(tmp_path, RANGES, "x=%22q%22", user_agent='a "quoted"\nagent')
    assert r'user-agent="a \"quoted\"\nagent" namespace="default"' in line
    assert line.endswith(f'uri="{RANGES}?x=%22q%22" response="200"')


def test_an_impersonated_user_is_recorded(tmp_path: Path) -> None:
    _, line = _lines(tmp_path, RANGES, impersonate_user="bob", impersonate_group="g1")
    assert r'as="bob" asgroups="\"g1\",\"system:authenticated\"" user-agent' in line
    assert line.endswith('response="403"')


def test_a_stranger_has_no_name(tmp_path: Path) -> None:
    (line,) = _lines(tmp_path, "/api/v1/pods", authorization="Bearer bad")
    rest = (
        'as="<self>" asgroups="<lookup>" user-agent="curl/7.88.1" namespace="<none>" uri="/api/v1/pods" response="401"'
    )
    assert line == _line("ResponseStarted", "list", 'user="<none>" groups="<none>" ', rest)
