"""Access requests have the answers of kube-apiserver."""

from __future__ import annotations

import msgspec

from ostinato.server.request import Request, Response, User
from ostinato.world import Simulation
from tests.contract.access.answers import Answer, answered, read, set_up
from tests.contract.access.differences import reason
from tests.contract.access.objects import IDENTITIES
from tests.contract.access.questions import Question, questions
from tests.stage.server import started_server


def ours(asked: list[Question]) -> list[Answer]:
    simulation, found = Simulation(seed=1), list[Answer]()

    async def main() -> None:
        async with started_server(simulation) as server:
            server.authenticator.add("admin", User("admin", "u-admin", ("system:masters",)))
            for each in IDENTITIES:
                server.authenticator.add(each.token, User(each.user, f"u-{each.token}", each.groups))

            async def ask(question: Question) -> tuple[int, bytes]:
                path, _, query = question.path.partition("?")
                headers = {name.lower(): value for name, value in question.headers}
                headers |= {"content-type": question.content_type, "accept": "application/json"}
                if question.who:
                    headers["authorization"] = f"Bearer {question.who}"
                body = b"" if question.body is None else msgspec.json.encode(question.body)
                answer = await server.handle(Request(question.method, path, query, headers, body=body))
                if isinstance(answer, Response):
                    return answer.status, answer.body
                return answer.status, b""

            await set_up(ask)
            found.extend(await answered(ask, asked))

    simulation.run(main())
    return found


def test_access_questions_are_answered_as_kube_apiserver_does() -> None:
    asked = questions()
    assert len(asked) >= 2000
    differing = [
        (question, theirs, own)
        for question, theirs, own in zip(asked, read(asked), ours(asked), strict=True)
        if theirs != own and not reason(question, theirs, own)
    ]
    shown = "\n".join(
        f"{q.who} {q.method} {q.path} {q.body} {q.headers}\n  {theirs}\n  {own}" for q, theirs, own in differing
    )
    assert not differing, f"{len(differing)} of {len(asked)} differ:\n{shown}"
