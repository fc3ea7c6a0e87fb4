"""Record the answers of a kube-apiserver: `python -m tests.contract.access https://127.0.0.1:PORT`.

It must run with `--authorization-mode=Node,RBAC`, `--enable-admission-plugins=NodeRestriction` and the tokens that
`python -m tests.contract.access tokens` prints, as its `--token-auth-file`.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import sys
from urllib.parse import urlsplit

import msgspec

from tests.contract.access.answers import answered, set_up, write
from tests.contract.access.objects import IDENTITIES
from tests.contract.access.questions import Question, questions


def tokens() -> str:
    lines = ['admin,admin,u-admin,"system:masters"']
    lines += [f'{each.token},{each.user},u-{each.token},"{",".join(each.groups)}"' for each in IDENTITIES]
    return "\n".join(lines)


class Remote:
    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._connection = http.client.HTTPSConnection(split.hostname or "", split.port, context=context)

    async def ask(self, question: Question) -> tuple[int, bytes]:
        headers = {"Content-Type": question.content_type, "Accept": "application/json", **dict(question.headers)}
        if question.who:
            headers["Authorization"] = f"Bearer {question.who}"
        body = None if question.body is None else msgspec.json.encode(question.body)
        self._connection.request(question.method, question.path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


async def record(url: str) -> None:
    remote, asked = Remote(url), questions()
    await set_up(remote.ask)
    write(asked, await answered(remote.ask, asked))
    sys.stdout.write(f"{len(asked)} questions answered\n")


if sys.argv[1] == "tokens":
    sys.stdout.write(f"{tokens()}\n")
else:
    asyncio.run(record(sys.argv[1]))
