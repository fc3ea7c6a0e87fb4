"""HttpHook: what a hook receives, and what its answers mean; over real HTTP and HTTPS."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.unit.client.clocks import ShiftedClock, world_with
from tests.unit.client.http import certificates
from tests.unit.client.http.servers import Served, run, serving

from ostinato.client.config.error import ConfigError
from ostinato.client.config.secret import Secret
from ostinato.frontends.kernel.transport.http import (
    Endpoint,
    EtagCache,
    HookError,
    HttpHook,
    TooManyRequests,
    retry_delay,
)
from ostinato.world import World


def answering(*answers: Callable[[web.Request], web.Response] | web.Response) -> Any:
    """A handler with these answers in turn; the last one for all further requests."""
    left = list(answers)

    async def answer(request: web.Request) -> web.StreamResponse:
        found = left.pop(0) if len(left) > 1 else left[0]
        return found(request) if callable(found) else found

    return answer


@asynccontextmanager
async def hook(
    endpoint: Endpoint, world: World | None = None, etags: EtagCache | None = None
) -> AsyncIterator[HttpHook]:
    made = HttpHook(endpoint, world or World.real(), etags)
    try:
        yield made
    finally:
        await made.close()


async def posted(handler: Any, path: str = "/sync", world: World | None = None, **options: Any) -> tuple[Any, Served]:
    """The answer to one document, or the error, and what the server saw."""
    async with (
        serving(handler, plain=True) as served,
        hook(Endpoint(url=f"{served.url}{path}", **options), world) as sender,
    ):
        try:
            return await sender.post(b'{"a":1}'), served
        except HookError as error:
            return error, served


def text(body: str, **options: Any) -> Callable[[web.Request], web.Response]:
    return lambda _request: web.Response(text=body, **options)


def test_a_hook_gets_the_document_as_json_and_its_body_is_the_answer() -> None:
    answer, served = run(posted(answering(text('{"ok":true}')), "/sync?a=b%20c"))
    assert answer == b'{"ok":true}'
    [request] = served.requests
    assert (request.method, request.path, dict(request.query)) == ("POST", "/sync", {"a": "b c"})
    assert request.headers["Content-Type"] == "application/json"
    assert served.bodies == [b'{"a":1}']


@pytest.mark.parametrize("status", [201, 204, 301, 307, 400, 404, 500, 503])
def test_a_status_other_than_200_is_an_error_with_the_beginning_of_the_body(status: int) -> None:
    body = "x" * 5000
    answer, served = run(
        posted(
            lambda _: _later(
                web.Response(status=status, text=None if status == 204 else body, headers={"Location": "/"})
            )
        )
    )
    assert isinstance(answer, HookError)
    assert f"/sync: status {status}: " in str(answer)
    assert len(str(answer)) < 500
    assert len(served.requests) == 1  # neither retried nor redirected


async def _later(answer: web.Response) -> web.Response:
    return answer


@pytest.mark.parametrize(
    ("after", "delay"), [("7", 7.0), ("0", 0.0), (None, None), ("soon", None), ("-1", None), ("9" * 30, 86400.0)]
)
def test_429_is_not_retried_but_returned_with_the_delay_that_the_hook_asks_for(
    after: str | None, delay: float | None
) -> None:
    headers = {} if after is None else {"Retry-After": after}
    answer, served = run(posted(answering(text("", status=429, headers=headers))))
    assert isinstance(answer, TooManyRequests)
    assert answer.delay == delay
    assert len(served.requests) == 1


def test_a_date_as_retry_after_counts_from_now() -> None:
    clock = World.real().clock
    late = clock.now().replace(microsecond=0)
    date = late.strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert retry_delay({"retry-after": date}, clock) == 0.0
    assert retry_delay({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}, clock) == 86400.0


def test_a_request_is_sent_again_once_if_the_connection_is_lost() -> None:
    async def drop(request: web.Request) -> web.StreamResponse:
        if len(served_requests) < 1:
            served_requests.append(request)
            assert request.transport is not None
            request.transport.abort()
        return web.Response(text="{}")

    served_requests: list[web.Request] = []
    answer, served = run(posted(drop))
    assert answer == b"{}"
    assert len(served.requests) == 2


def test_a_hook_that_hangs_fails_after_its_timeout() -> None:
    async def hang(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    answer, _ = run(posted(hang, timeout=0.05))
    assert "timed out: no response within 0.05 seconds" in str(answer)


def test_an_answer_that_is_too_large_is_an_error() -> None:
    answer, _ = run(posted(answering(text("x" * 2000)), max_answer=1000))
    assert isinstance(answer, HookError)
    assert "larger than 1000 bytes" in str(answer)


def test_an_unreachable_hook_is_an_error_that_names_it() -> None:
    async def main() -> None:
        async with hook(Endpoint(url="http://127.0.0.1:1/sync")) as sender:
            await sender.post(b"{}")

    with pytest.raises(HookError, match=r"127\.0\.0\.1:1/sync: the server cannot be reached"):
        run(main())


def test_credentials_are_sent_and_shown_nowhere() -> None:
    answer, served = run(posted(answering(text("no", status=401)), authorization=Secret("Bearer hunter2")))
    assert served.headers["Authorization"] == "Bearer hunter2"
    assert "hunter2" not in str(answer)
    assert "hunter2" not in repr(Endpoint(url="http://a", authorization=Secret("hunter2")))


def test_a_password_in_the_url_is_basic_authentication() -> None:
    async def main() -> tuple[Served, str]:
        async with serving(answering(text("no", status=403)), plain=True) as served:
            url = served.url.replace("http://", "http://ada:p%40ss@")
            async with hook(Endpoint(url=url)) as sender:
                with pytest.raises(HookError) as error:
                    await sender.post(b"{}")
            return served, str(error.value)

    served, error = run(main())
    assert base64.b64decode(served.headers["Authorization"].removeprefix("Basic ")) == b"ada:p@ss"
    assert "p%40ss" not in error


def test_the_server_is_verified_and_the_client_presents_its_certificate() -> None:
    own = certificates.client("metacontroller")
    seen: list[Any] = []

    def peer(request: web.Request) -> web.Response:
        assert request.transport is not None
        seen.append(request.transport.get_extra_info("peercert"))
        return web.Response(text="{}")

    async def main() -> None:
        pair, authority = certificates.server("hook.example"), certificates.authority().pem
        async with serving(answering(peer), pair=pair, client_authority=authority) as served:
            trusting = Endpoint(
                url="https://hook.example/sync",
                address=f"127.0.0.1:{served.port}",
                ca=authority,
                certificate=own.pem,
                key=Secret(own.key_pem.decode()),
            )
            async with hook(trusting) as sender:
                assert await sender.post(b"{}") == b"{}"
            for url, authority_ in (("https://other.example/", authority), ("https://hook.example/", b"")):
                wrong = Endpoint(url=url, address=f"127.0.0.1:{served.port}", ca=authority_)
                async with hook(wrong) as sender:
                    with pytest.raises(HookError, match="certificate"):
                        await sender.post(b"{}")

    run(main())
    assert dict(part[0] for part in seen[0]["subject"])["commonName"] == "metacontroller"
    assert len(seen) == 1


@pytest.mark.parametrize("url", ["", "hook", "ftp://a/b", "http://", "/sync"])
def test_what_is_not_a_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not the URL of a hook"):
        HttpHook(Endpoint(url=url), World.real())


@pytest.mark.parametrize("status", [304, 412])
def test_a_hook_with_etags_may_answer_that_nothing_has_changed(status: int) -> None:
    def conditional(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == '"one"':
            return web.Response(status=status)
        return web.Response(text='{"children":[]}', headers={"ETag": '"one"'})

    async def main() -> list[bytes]:
        clock = ShiftedClock()
        async with serving(answering(conditional), plain=True) as served:
            async with hook(Endpoint(url=served.url), etags=EtagCache(clock, timeout=60)) as sender:
                bodies = [await sender.post(b"{}", "a"), await sender.post(b"{}", "a"), await sender.post(b"{}", "b")]
                clock.shift += 61
                bodies.append(await sender.post(b"{}", "a"))
            asked = [request.headers.get("If-None-Match") for request in served.requests]
            assert asked == [None, '"one"', None, None]
            return bodies

    assert run(main()) == [b'{"children":[]}'] * 4


def test_304_without_a_known_answer_is_an_error() -> None:
    answer, _ = run(posted(answering(text("", status=304))))
    assert "status 304" in str(answer)


def test_the_oldest_answers_are_dropped() -> None:
    world = world_with(ShiftedClock())
    etags = EtagCache(world.clock)
    for number in range(10_001):
        etags.put(number, '"x"', b"")
    assert etags.get(0) is None
    assert etags.get(10_000) is not None
