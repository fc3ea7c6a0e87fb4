"""Reviews of access: caching and limits, in virtual time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ostinato.client import TransportError
from ostinato.http.server import HttpRequest, HttpResponse
from ostinato.kinds.authentication_v1 import TokenReview, TokenReviewStatus, UserInfo
from ostinato.manager.serving.access import AccessReviews
from ostinato.world import Simulation


class Reviewer:
    """An API server that knows the token `good`, and allows its user `/metrics`."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.reviews: list[str] = []
        self.most = self.running = 0
        self.fails = False

    async def create(self, review: Any, **options: Any) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        await self.clock.sleep(0.1)
        self.running -= 1
        if self.fails:
            raise TransportError("no")
        if isinstance(review, TokenReview):
            self.reviews.append(review.spec.token)
            user = UserInfo(username="monitor") if review.spec.token == "good" else None
            review.status = TokenReviewStatus(authenticated=user is not None, user=user)
        else:
            self.reviews.append(f"{review.spec.user} {review.spec.non_resource_attributes.path}")
            review.status.allowed = review.spec.non_resource_attributes.path == "/metrics"
        return review


@pytest.fixture
def stage() -> Any:
    simulation = Simulation(1)
    clock = simulation.machine("here").clock
    reviewer = Reviewer(clock)
    reviews = AccessReviews(lambda: reviewer, clock)  # type: ignore[arg-type, return-value]

    async def handler(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, b"metrics")

    protected = reviews.protect(handler)

    async def get(token: str, path: str = "/metrics", scheme: str = "Bearer") -> int:
        headers = {"authorization": f"{scheme} {token}"} if token else {}
        request: Any = SimpleNamespace(method="GET", path=path, headers=headers)
        return (await protected(request)).status

    return SimpleNamespace(run=simulation.run, clock=clock, reviewer=reviewer, get=get)


def test_decisions_expire(stage: Any) -> None:
    async def play() -> None:
        for _ in range(3):
            assert await stage.get("good") == 200
        assert stage.reviewer.reviews == ["good", "monitor /metrics"]
        await stage.clock.sleep(61)
        assert await stage.get("good", scheme="bearer") == 200
        assert stage.reviewer.reviews[2:] == ["good"], "the decision is kept for five minutes, the user for one"
        await stage.clock.sleep(300)
        assert await stage.get("good") == 200
        assert stage.reviewer.reviews[3:] == ["good", "monitor /metrics"]

    stage.run(play())


def test_rejections_are_cached_for_a_while(stage: Any) -> None:
    async def play() -> None:
        assert [await stage.get("bad"), await stage.get("bad")] == [401, 401]
        assert [await stage.get("good", "/x"), await stage.get("good", "/x")] == [403, 403]
        assert stage.reviewer.reviews == ["bad", "good", "monitor /x"]
        await stage.clock.sleep(31)
        assert await stage.get("bad") == 401
        assert stage.reviewer.reviews[3:] == ["bad"]

    stage.run(play())


def test_nothing_is_reviewed_without_a_bearer_token(stage: Any) -> None:
    async def play() -> None:
        assert [await stage.get(""), await stage.get("good", scheme="Basic"), await stage.get(" ")] == [401] * 3
        assert stage.reviewer.reviews == []

    stage.run(play())


def test_failed_reviews_are_not_cached(stage: Any) -> None:
    async def play() -> None:
        stage.reviewer.fails = True
        assert await stage.get("good") == 500
        stage.reviewer.fails = False
        assert await stage.get("good") == 200

    stage.run(play())


def test_a_flood_of_tokens_is_limited(stage: Any) -> None:
    async def play() -> None:
        found = await asyncio.gather(*(stage.get(f"bad-{number}") for number in range(1200)))
        assert set(found) == {401}
        assert stage.reviewer.most == 16

    stage.run(play())
