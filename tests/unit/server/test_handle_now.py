"""`Server.handle_now` returns the response of `Server.handle`, or None."""

from __future__ import annotations

import json
import random

from tests.contract.routing.replay import request_of, started
from tests.contract.routing.table import Case, cases

from ostinato.http.errors import InvalidHttp
from ostinato.server.core import Server
from ostinato.server.request import Request, Response, User
from ostinato.world import Simulation

REQUESTS = 5000
_ACCEPTED = (
    None,
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "text/html",
    "nonsense",
)
_NAMES = ("a", "a", "a", "b", "b", "absent", "..", "a%2e", "%61", "a/", "a//", "a/status", "a?pretty=1", "")


def generated(seed: int) -> list[Case]:
    """Requests that `handle_now` answers, and similar ones."""
    chance = random.Random(seed)
    places = (
        "/api/v1/namespaces/mine/configmaps",
        "/api/v1/namespaces/victim/configmaps",
        "/api/v1/namespaces/mine/namespaces",
        "/api/v1/namespaces/mine/nodes",
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/apis/routing.example/v1/namespaces/mine/widgets",
        "/apis/routing.example/v1/namespaces/mine/gadgets",
        "/apis/routing.example/v1/gadgets",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/mine/roles",
    )
    near = [Case(chance.choice(("admin", "owner", "named", "nobody")), "GET", "") for _ in range(REQUESTS)]
    near = [each._replace(target=f"{chance.choice(places)}/{chance.choice(_NAMES)}") for each in near]
    return near + [case for case in cases() if case.method in ("GET", "HEAD", "get")][:REQUESTS]


def as_a_token(request: Request, case: Case) -> Request:
    """The same request without impersonation, which `handle_now` leaves to `handle`."""
    headers = {**request.headers, "authorization": f"Bearer {case.user}"}
    headers.pop("impersonate-user", None)
    return Request(request.method, request.path, request.query_string, headers)


def shown(answer: Response) -> tuple[object, ...]:
    return answer.status, answer.content_type, list(answer.headers), answer.body


def test_a_synchronous_response_is_that_of_handle() -> None:
    world = Simulation(seed=1)
    chance = random.Random(2)
    answered: list[int] = []

    async def compare(server: Server, case: Case) -> None:
        try:
            request = request_of(case)
        except InvalidHttp:
            return
        if chance.random() < 0.8:
            request = as_a_token(request, case)
        accepted = chance.choice(_ACCEPTED)
        if accepted is not None:
            request.headers = {**request.headers, "accept": accepted}
        again = Request(request.method, request.path, request.query_string, request.headers)
        early = server.handle_now(request)
        if early is None:
            return
        assert isinstance(early, Response)
        answered.append(early.status)
        late = await server.handle(again)
        assert isinstance(late, Response), case
        assert shown(early) == shown(late), (case, accepted)

    async def main() -> None:
        server = await started(world)
        for user in ("owner", "named", "nobody"):
            server.authenticator.add(user, User(user))
        for case in generated(seed=3):
            await compare(server, case)
        await server.close()

    world.run(main())
    assert len(answered) > 300
    assert set(answered) >= {200, 403, 404, 406}


def test_a_synchronous_response_has_the_object_that_was_authorized() -> None:
    world = Simulation(seed=1)

    async def main() -> None:
        server = await started(world)
        for target in ("/api/v1/namespaces/mine/namespaces/victim", "/api/v1/namespaces/mine/nodes/a"):
            refused = server.handle_now(request_of(Case("admin", "GET", target)))
            assert isinstance(refused, Response)
            assert refused.status == 404
        found = server.handle_now(request_of(Case("admin", "GET", "/api/v1/namespaces/mine/configmaps/a")))
        assert isinstance(found, Response)
        assert json.loads(found.body)["metadata"]["namespace"] == "mine"
        await server.close()

    world.run(main())
