"""Paths, methods and users: each request has the recorded answer of kube-apiserver."""

from __future__ import annotations

import json

from ostinato.http.errors import InvalidHttp
from ostinato.server.request import Request, Response
from ostinato.server.request.route import parse
from ostinato.world import Simulation
from tests.contract.routing.record import RECORDED
from tests.contract.routing.replay import answered, request_of, started
from tests.contract.routing.table import Case, cases

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def test_each_request_of_the_routing_table_is_answered_as_by_kube_apiserver() -> None:
    """Where kube-apiserver fails with a 500 (a namespace `..`, `/api/v1/watch` alone), the request is refused here."""
    recorded = json.loads(RECORDED.read_text())
    assert [Case(*line[:3]) for line in recorded] == cases(), "record the table again"
    world = Simulation(seed=1)
    different: list[str] = []

    async def main() -> None:
        server = await started(world)
        for user, method, target, *expected in recorded:
            found = await answered(server, Case(user, method, target))
            same = found == expected or (expected[0] == 500 and 400 <= found[0] < 500)
            if not same:
                different.append(f"{user}: {method} {target}: {found} instead of {expected}")
        await server.close()

    world.run(main())
    assert not different, "\n".join(different[:20])


def test_a_review_of_access_says_what_is_then_decided() -> None:
    """A SubjectAccessReview of what a request asks for, and the request itself: allowed, and not answered with 403."""
    recorded = json.loads(RECORDED.read_text())
    world = Simulation(seed=1)
    different: list[str] = []

    async def main() -> None:
        server = await started(world)
        for user, method, target, status, *_ in recorded[::4]:
            try:
                request = request_of(Case(user, method, target))
            except InvalidHttp:
                continue
            route = parse(method, request.path, watch=Case(user, method, target).watches)
            if route is None or user == "admin" or "fieldSelector" in target:
                continue
            parts = ("verb", "group", "resource", "subresource", "namespace", "name")
            attributes = {part: getattr(route, part) for part in parts}
            body = json.dumps(
                {"spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}}
            )
            asked = Request("POST", REVIEWS, headers={"authorization": "Bearer admin"}, body=body.encode())
            answer = await server.handle(asked)
            assert isinstance(answer, Response)
            allowed = json.loads(answer.body)["status"]["allowed"]
            if allowed != (status != 403) and status != 500:
                different.append(f"{user}: {method} {target}: {status}, but the review says {allowed}")
        await server.close()

    world.run(main())
    assert not different, "\n".join(different[:20])
