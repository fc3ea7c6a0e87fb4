"""Delegated authorization of a node's API."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ostinato.api.errors import InternalError
from ostinato.client.client import Client
from ostinato.kinds.authentication_v1 import TokenReview, TokenReviewStatus, UserInfo
from ostinato.kinds.authorization_v1 import SubjectAccessReview, SubjectAccessReviewStatus
from ostinato.plane.node.server.authorization import DelegatedAuthorization
from ostinato.server.request import Peer, Request
from ostinato.world import World


class ApiServer:
    """Knows one token, and lets users do what is in a set of (user, verb, subresource)."""

    def __init__(self, *allowed: tuple[str, str, str]) -> None:
        self.allowed = set(allowed)
        self.tokens = 0
        self.asked: list[tuple[str, str, str]] = []
        self.groups: list[str] = []
        self.fails = False

    async def create(self, review: Any) -> Any:
        if self.fails:
            raise InternalError.of("gone")
        if isinstance(review, TokenReview):
            self.tokens += 1
            good = review.spec.token == "good"
            review.status = TokenReviewStatus(authenticated=good, user=UserInfo(username="robot") if good else None)
            return review
        assert isinstance(review, SubjectAccessReview)
        attributes = review.spec.resource_attributes
        assert attributes is not None
        assert (attributes.resource, attributes.name) == ("nodes", "n")
        asked = (review.spec.user or "", attributes.verb or "", attributes.subresource or "")
        self.asked.append(asked)
        self.groups = list(review.spec.groups)
        review.status = SubjectAccessReviewStatus(allowed=asked in self.allowed)
        return review


def request(path: str, method: str = "GET", peer: Peer | None = None, token: str = "") -> Request:
    made = Request(method, path, headers={"authorization": f"Bearer {token}"} if token else {})
    made.peer = peer
    return made


JANE = Peer("jane", ("people",))


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("GET", "/stats/summary", [("get", "stats")]),
        ("GET", "/metrics", [("get", "metrics")]),
        ("GET", "/metrics/cadvisor", [("get", "metrics")]),
        ("GET", "/logs/syslog", [("get", "log")]),
        ("POST", "/checkpoint/ns/p/c", [("create", "checkpoint")]),
        ("GET", "/pods", [("get", "pods"), ("get", "proxy")]),
        ("GET", "/healthz", [("get", "healthz"), ("get", "proxy")]),
        ("GET", "/configz", [("get", "configz"), ("get", "proxy")]),
        ("GET", "/containerLogs/ns/p/c", [("get", "proxy")]),
        ("PUT", "/x", [("update", "proxy")]),
        ("PATCH", "/x", [("patch", "proxy")]),
        ("DELETE", "/x", [("delete", "proxy")]),
        ("HEAD", "/x", [("", "proxy")]),
        # A WebSocket begins with a GET: what it does is no reading.
        ("GET", "/exec/ns/p/c", [("create", "proxy")]),
        ("GET", "/%65xec/ns/p/c", [("create", "proxy")]),
        ("GET", "//exec/ns/p/c", [("create", "proxy")]),
        ("GET", "/attach/ns/p/c", [("create", "proxy")]),
        ("GET", "/portForward/ns/p", [("create", "proxy")]),
        ("GET", "/statsx/summary", [("get", "proxy")]),
    ],
)
def test_the_access_review_follows_from_method_and_path(method: str, path: str, asked: list[tuple[str, str]]) -> None:
    server = ApiServer()

    async def play() -> None:
        delegation = DelegatedAuthorization("n", cast("Client", server), World.real().clock)
        refused = await delegation.check(request(path, method, JANE))
        assert refused is not None
        assert refused.status == 403
        assert f"user=jane, verb={asked[0][0]}, resource=nodes".encode() in refused.body

    asyncio.run(play())
    assert server.asked == [("jane", *each) for each in asked]
    assert server.groups == ["people", "system:authenticated"]


def test_no_group_is_exempt_and_anonymous_requests_are_not_reviewed() -> None:
    server = ApiServer(("admin", "get", "stats"))

    async def play() -> None:
        delegation = DelegatedAuthorization("n", cast("Client", server), World.real().clock)
        masters = Peer("admin", ("system:masters",))
        assert await delegation.check(request("/stats/summary", peer=masters)) is None
        refused = await delegation.check(request("/exec/ns/p/c", "POST", masters))
        assert refused is not None
        assert refused.status == 403
        before = len(server.asked)
        expired = Peer("admin", ("system:masters",), fault="certificate has expired")
        for peer, token in ((None, ""), (expired, ""), (Peer(""), ""), (None, "bad")):
            refused = await delegation.check(request("/stats/summary", peer=peer, token=token))
            assert refused is not None
            assert refused.status == 401
        assert len(server.asked) == before

    asyncio.run(play())


def test_reviews_are_cached_allowed_longer_than_denied() -> None:
    server = ApiServer(("robot", "get", "stats"))

    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()

    async def status(delegation: DelegatedAuthorization, path: str) -> int:
        refused = await delegation.check(request(path, token="good"))
        return 200 if refused is None else refused.status

    async def play() -> None:
        delegation = DelegatedAuthorization("n", cast("Client", server), cast("Any", clock))
        for _ in range(3):
            assert await status(delegation, "/stats/summary") == 200
            assert await status(delegation, "/metrics") == 403
        assert (server.tokens, len(server.asked)) == (1, 2)
        server.allowed = {("robot", "get", "metrics")}
        clock.now = 31.0
        assert await status(delegation, "/metrics") == 200
        assert await status(delegation, "/stats/summary") == 200
        clock.now = 301.0
        assert await status(delegation, "/stats/summary") == 403
        assert server.tokens == 2

    asyncio.run(play())


def test_requests_are_rejected_if_reviews_fail() -> None:
    server = ApiServer(("jane", "get", "stats"))
    server.fails = True

    async def play() -> None:
        delegation = DelegatedAuthorization("n", cast("Client", server), World.real().clock)
        refused = await delegation.check(request("/stats/summary", peer=JANE))
        assert refused is not None
        assert refused.status == 500
        refused = await delegation.check(request("/stats/summary", token="good"))
        assert refused is not None
        assert refused.status == 401

    asyncio.run(play())
