"""Authentication: a bearer token or a client certificate says who asks; nobody is anonymous."""

from __future__ import annotations

import csv
import hmac
from pathlib import Path

from ostinato.api.errors import Unauthorized
from ostinato.server.request import Request, User

ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class Authenticator:
    def __init__(self) -> None:
        self._tokens: dict[str, User] = {}

    def add(self, token: str, user: User) -> None:
        self._tokens[token] = user

    def add_file(self, path: Path) -> None:
        """A CSV as kube-apiserver's --token-auth-file: token, user, uid, "group1,group2"."""
        with path.open(newline="") as file:
            for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
                if not row:
                    continue
                if len(row) < 3 or not row[0] or not row[1]:
                    raise ValueError(f'{path}: line {number}: want token,user,uid and optionally "group1,group2"')
                groups = tuple(group for group in row[3].split(",") if group) if len(row) > 3 else ()
                self.add(row[0], User(row[1], row[2], groups))

    def authenticate(self, request: Request) -> User:
        header = request.headers.get("authorization", "")
        if header:
            scheme, _, token = header.partition(" ")
            if scheme.lower() == "bearer":
                user = self._tokens.get(token.strip())
                if user is not None and hmac.compare_digest(token.strip(), token.strip()):
                    return _known(user)
            raise Unauthorized.of("Unauthorized")
        if request.peer is not None:
            name, groups = request.peer
            return _known(User(name, groups=tuple(groups)))
        return ANONYMOUS


def _known(user: User) -> User:
    return User(user.name, user.uid, (*user.groups, "system:authenticated"), user.extra)
