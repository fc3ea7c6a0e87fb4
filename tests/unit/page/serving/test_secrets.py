"""Values of Secrets in all that the page answers: none of them, whatever is asked."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

import msgspec
from tests.unit.page.browser import Browser, paged

from ostinato.client.views import Unstructured

VALUES = ("first-canary-value", "second-canary-value")
QUERY = urlencode({"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "canary"})
PATHS = (
    f"/api/object?{QUERY}",
    f"/api/why?{QUERY}",
    "/api/history?from=0",
    "/api/objects?limit=20000",
    "/api/objects?kind=Secret",
    "/api/alarms",
    "/api/graph",
)


def secret(value: str) -> dict[str, Any]:
    applied = msgspec.json.encode({"kind": "Secret", "stringData": {"password": value}}).decode()
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": applied, "note": f"it is {value}"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "canary", "annotations": annotations},
        "stringData": {"password": value},
    }


def test_no_answer_contains_a_value_of_a_secret() -> None:
    async def test() -> None:
        async with paged() as (browser, client):
            await browser.log_in()
            await until(browser, "/api/objects?kind=Secret", b'"v1/Secret"')
            await client.apply(secret(VALUES[0]))
            await until(browser, f"/api/object?{QUERY}", b'"verb":"create"')
            await client.apply(secret(VALUES[1]))
            await until(browser, f"/api/object?{QUERY}", b'"data.password"')
            await check(browser)
            await client.delete(Unstructured.of("v1", "Secret"), "canary")
            await until(browser, f"/api/object?{QUERY}", b'"removed"')
            await check(browser)

    asyncio.run(test())


async def until(browser: Browser, path: str, text: bytes) -> None:
    async with asyncio.timeout(30):
        while text not in (await browser.request(path)).body:  # noqa: ASYNC110 - the page is asked as by a browser
            await asyncio.sleep(0.02)


async def check(browser: Browser) -> None:
    for path in PATHS:
        body = (await browser.request(path)).body
        for value in VALUES:
            assert value.encode() not in body, path
            assert b64encode(value.encode()) not in body, path
