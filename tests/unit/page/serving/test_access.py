"""Who may ask the page: token, cookie, Host, Origin; and what is never answered."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.unit.page.browser import paged

from ostinato.cli.page.asking import asked
from ostinato.http.request import parse_head
from ostinato.http.server import HttpRequest
from ostinato.page.page import PageSettings
from ostinato.page.serving.access import Access, Refused
from ostinato.world import World

PATHS = (
    "/",
    "/assets/app.js",
    "/api/about",
    "/api/stream",
    "/api/graph",
    "/api/history",
    "/api/objects",
    "/api/object?apiVersion=v1&kind=Namespace&name=default",
    "/api/why?write=1",
    "/api/nodes",
    "/api/alarms",
    "/api/pods/log?namespace=a&name=b",
    "/api/pods/exec?namespace=a&name=b",
    "/nothing",
)
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
JSON = ("Content-Type: application/json", "X-Ostinato-Page: 1")
DELETION = (
    '{"ref":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a","uid":"00000000-0000-4000-8000-0"}}'
)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_nothing_is_answered_without_the_cookie() -> None:
    async def test() -> None:
        async with paged(writes=True) as (browser, _):
            for path in PATHS:
                assert (await browser.request(path)).status == 401, path
            answer = await browser.request("/api/delete", browser.origin, *JSON, method="POST", body=DELETION)
            assert answer.status == 401
            browser.cookie = "ostinato-page=guess; " + browser.cookie
            assert (await browser.request("/api/about")).status == 401

    run(test())


def test_the_token_works_once() -> None:
    async def test() -> None:
        async with paged() as (browser, _):
            for wrong in ("", "x", browser.token[:-1], browser.token + "x", "%00", "é"):
                assert (await browser.request(f"/?token={wrong}")).status in (400, 401), wrong
            first = await browser.request(f"/?token={browser.token}")
            assert (first.status, first.headers["location"]) == (303, "/")
            assert first.headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
            assert browser.token not in first.headers["set-cookie"]
            assert (await browser.request(f"/?token={browser.token}")).status == 401
            browser.cookie = first.headers["set-cookie"].partition(";")[0]
            assert (await browser.request("/")).status == 200

    run(test())


def test_another_host_is_not_answered_even_with_the_cookie() -> None:
    async def test() -> None:
        async with paged() as (browser, _):
            await browser.log_in()
            port = browser.origin.rpartition(":")[2]
            for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}"):
                assert (await browser.request("/api/about", host=host)).status == 421, host
                assert (await browser.request("/?token=x", host=host)).status == 421, host
            for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"LOCALHOST:{port}"):
                assert (await browser.request("/api/about", host=host)).status == 200, host

    run(test())


def test_requests_of_other_sites_are_rejected() -> None:
    async def test() -> None:
        async with paged(writes=True) as (browser, _):
            await browser.log_in()
            for line in ("Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"):
                assert (await browser.request("/api/about", line)).status == 403, line
                answer = await browser.request("/api/delete", line, *JSON, method="POST", body=DELETION)
                assert answer.status == 403, line
                upgrade = await browser.request("/api/pods/exec?namespace=a&name=b", line, *UPGRADE)
                assert upgrade.status == 403, line
            answer = await browser.request("/api/delete", *JSON, method="POST", body=DELETION)
            assert answer.status == 403, "without an Origin"
            upgrade = await browser.request("/api/pods/exec?namespace=a&name=b", *UPGRADE)
            assert upgrade.status == 403, "without an Origin"
            assert (await browser.request("/api/about", "Sec-Fetch-Site: same-origin")).status == 200

    run(test())


def test_a_form_of_another_site_cannot_delete() -> None:
    async def test() -> None:
        async with paged(writes=True) as (browser, _):
            await browser.log_in()
            plain = ("Content-Type: text/plain", "X-Ostinato-Page: 1")
            unmarked = ("Content-Type: application/json",)
            for lines in (plain, unmarked):
                answer = await browser.request("/api/delete", browser.origin, *lines, method="POST", body=DELETION)
                assert answer.status == 415, lines

    run(test())


def test_a_page_is_read_only_unless_writes_are_allowed() -> None:
    async def test() -> None:
        async with paged() as (browser, _):
            await browser.log_in()
            answer = await browser.request("/api/delete", browser.origin, *JSON, method="POST", body=DELETION)
            assert answer.status == 403
            assert b"--page-writes" in answer.body
            shell = await browser.request("/api/pods/exec?namespace=a&name=b", browser.origin, *UPGRADE)
            assert shell.status == 403

    run(test())


def test_objects_are_deleted_with_writes() -> None:
    async def test() -> None:
        async with paged(writes=True) as (browser, client):
            await browser.log_in()
            created = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
            uid = created["metadata"]["uid"]
            body = DELETION.replace("00000000-0000-4000-8000-0", "another")
            refused = await browser.request("/api/delete", browser.origin, *JSON, method="POST", body=body)
            assert refused.status == 409, "the uid is that of another object"
            body = DELETION.replace("00000000-0000-4000-8000-0", uid)
            assert (await browser.request("/api/delete", browser.origin, *JSON, method="POST", body=body)).status == 200
            again = await browser.request("/api/delete", browser.origin, *JSON, method="POST", body=body)
            assert again.status == 404
            bad = await browser.request("/api/delete", browser.origin, *JSON, method="POST", body="{")
            assert bad.status == 400
            large = await browser.request("/api/delete", browser.origin, *JSON, method="POST", body="x" * 100_000)
            assert large.status == 413

    run(test())


def test_every_answer_has_the_security_headers() -> None:
    async def test() -> None:
        async with paged() as (browser, _):
            refused = await browser.request("/")
            await browser.log_in()
            answers = [refused, *[await browser.request(path) for path in ("/", "/api/about", "/api/stream", "/no")]]
            for answer in answers:
                policy = answer.headers["content-security-policy"]
                assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
                assert "unsafe" not in policy
                assert "frame-ancestors 'none'" in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["referrer-policy"] == "no-referrer"
                assert answer.headers["cache-control"] in ("no-store", "no-cache")

    run(test())


FILES = (
    "/assets/../page.py",
    "/assets/..%2fpage.py",
    "/assets/%2e%2e/page.py",
    "/assets//etc/passwd",
    "/assets/%2fetc%2fpasswd",
    "/assets/..%5cpage.py",
    "/assets/app.js%00.html",
    "/assets/",
    "/assets/.gitkeep",
    "/../../../etc/passwd",
    "/api/../page.py",
)


def test_no_other_file_is_reachable() -> None:
    async def test() -> None:
        async with paged() as (browser, _):
            await browser.log_in()
            for path in FILES:
                answer = await browser.request(path)
                assert answer.status in (400, 404), path
                assert b"root:" not in answer.body
                assert b"import" not in answer.body

    run(test())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "*"])
def test_a_wildcard_address_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="name the one that browsers will use"):
        PageSettings(mode="plane", cluster="", host=host)


def test_connections_are_limited() -> None:
    async def test() -> None:
        async with paged() as (browser, _):
            host, _, port = browser.origin.removeprefix("Origin: http://").rpartition(":")
            opened = [await asyncio.open_connection(host, int(port)) for _ in range(140)]
            try:
                async with asyncio.timeout(10):
                    reader, _ = opened[-1]
                    assert await reader.read() == b""
            except ConnectionResetError:
                pass
            finally:
                for _, writer in opened:
                    writer.close()
            await asyncio.sleep(0.05)
            assert (await browser.request("/")).status == 401

    run(test())


def test_browsers_leave_out_the_default_port() -> None:
    access = Access(World.real().ids, "127.0.0.1", 80)
    for host in ("127.0.0.1", "127.0.0.1:80", "localhost", "[::1]"):
        access.check_host(head(host))
        access.check_site(head(host), changes=True)
    with pytest.raises(Refused):
        Access(World.real().ids, "127.0.0.1", 8420).check_host(head("127.0.0.1"))


def head(host: str) -> HttpRequest:
    async def read(_: int) -> bytes:
        return b""

    return HttpRequest(parse_head(f"GET / HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}".encode()), read)


def test_a_second_browser_needs_a_new_token(tmp_path: Path) -> None:
    async def test() -> None:
        async with paged(socket=tmp_path / "page.sock") as (browser, _):
            await browser.log_in()
            first, browser.cookie = browser.cookie, ""
            assert (await browser.request(f"/?token={browser.token}")).status == 401
            async with asked(tmp_path / "page.sock", World.real()) as page:
                unused = (await page.renew()).partition("token=")[2]
                browser.token = (await page.renew()).partition("token=")[2]
            assert (await browser.request(f"/?token={unused}")).status == 401, "only the last one works"
            await browser.log_in()
            assert browser.cookie != first
            for cookie in (first, browser.cookie):
                browser.cookie = cookie
                assert (await browser.request("/api/about")).status == 200
            refused = await browser.request("/token", browser.origin, *JSON, method="POST", body="{}")
            assert refused.status == 405, "a browser cannot ask for a token"

    run(test())


QUERIES = (
    "/api/pods/log?namespace=default%2Fsecrets&name=a",
    "/api/pods/log?namespace=default&name=..",
    "/api/pods/usage?namespace=..&name=a",
    "/api/pods/usage?namespace=a&name=b%2Fc",
    "/api/object?apiVersion=v1&kind=Pod&namespace=a%252Fb&name=c",
    "/api/why?apiVersion=v1&kind=Pod&namespace=a&name=.",
    "/api/objects?limit=" + "9" * 5000,
    "/api/objects?limit=-1",
    "/api/objects?labels=%3D%3D%3D",
    "/api/history?from=nan",
    "/api/history?to=1e999",
    "/api/object?apiVersion=a%2Fb%2Fc&kind=Pod&name=a",
)


def test_names_cannot_lead_to_other_paths_and_numbers_are_bounded() -> None:
    async def test() -> None:
        async with paged(writes=True) as (browser, _):
            await browser.log_in()
            for path in QUERIES:
                assert (await browser.request(path)).status == 400, path
            upgrade = await browser.request("/api/pods/exec?namespace=..&name=b", browser.origin, *UPGRADE)
            assert upgrade.status == 400
            assert (await browser.request("/api/why?write=" + "9" * 5000)).status == 404

    run(test())
