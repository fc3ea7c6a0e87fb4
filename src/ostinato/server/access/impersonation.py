"""Impersonation: replace the user of a request by the one in its Impersonate-* headers.

The headers are `Impersonate-User`, `-Uid`, `-Group` and `-Extra-KEY`. There are several impersonation modes:

- Legacy mode needs the verb `impersonate` on everything that the headers name: users, groups, serviceaccounts, uids and
  userextras.
- Constrained modes apply to one kind of user each (associated node, arbitrary node, service account, other users) and
  need two verbs: `impersonate-on:MODE:VERB` on the request's own attributes, and `impersonate:MODE` on everything that
  the headers name.

The last successful mode of a user is tried first, then the others. The error is that of the first mode tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from ostinato.api.errors import BadRequest, Forbidden, InternalError
from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import Path
from ostinato.api.validation.field_values import validate_domain_prefixed_path
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authentication.identity import ANONYMOUS, AUTHENTICATED
from ostinato.server.access.authorization.authorizer import MASTERS, Authorizer
from ostinato.server.access.messages import aggregated
from ostinato.server.request import Request, User

MOST_REMEMBERED = 10_000  # users whose last mode is cached
MANY = 4  # groups or extra values from which on a wildcard grant is checked first

_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"
_UNAUTHENTICATED = ANONYMOUS.groups[0]
_NODES = "system:nodes"
_NODE_OF = "authentication.kubernetes.io/node-name"  # extra key of a service account token: the node of its Pod
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def impersonates(headers: Mapping[str, str]) -> bool:
    """Whether a request has impersonation headers. Called for every request."""
    return "impersonate-" in " ".join(headers)


class _Mode(NamedTuple):
    sort: str  # "" for legacy mode
    fits: Callable[[User, User], bool]  # whether the mode applies to (impersonated user, requesting user)

    @property
    def verb(self) -> str:
        return f"impersonate:{self.sort}" if self.sort else "impersonate"


class Impersonation:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._last_mode: dict[str, _Mode] = {}  # by the name of the requesting user

    async def user(self, request: Request, user: User, attributes: RequestAttributes) -> User:
        """The impersonated user; BadRequest for invalid headers, Forbidden if not allowed."""
        wanted = _wanted(request)
        if wanted is None:
            return user
        last = self._last_mode.get(user.name)
        refusal: Exception | None = None
        for mode in _MODES if last is None else (last, *(mode for mode in _MODES if mode is not last)):
            if not mode.fits(wanted, user):
                continue
            try:
                found = await self._impersonate(mode, wanted, user, attributes)
            except Forbidden as error:
                refusal = refusal or error
                continue
            self._remember(user.name, mode)
            if request.audit is not None:
                request.audit.impersonated = found
                request.audit.constraint = mode.verb if mode.sort else ""
            return found
        raise refusal or InternalError.of("all impersonation modes failed")

    def _remember(self, name: str, mode: _Mode) -> None:
        if len(self._last_mode) >= MOST_REMEMBERED and name not in self._last_mode:
            self._last_mode.clear()
        self._last_mode[name] = mode

    async def _impersonate(self, mode: _Mode, wanted: User, user: User, attributes: RequestAttributes) -> User:
        if mode.sort:
            await self._authorizer.check(
                user, attributes._replace(verb=f"impersonate-on:{mode.sort}:{attributes.verb}")
            )
        groups = await self._check_name(mode, wanted, user)
        if wanted.uid:
            await self._authorizer.check(user, RequestAttributes(mode.verb, _AUTHENTICATION, "uids", name=wanted.uid))
        if wanted.groups:
            await self._check_groups(mode, wanted.groups, user)
        if wanted.extra:
            await self._check_extra(mode, wanted.extra, user)
        if wanted.name == ANONYMOUS.name:
            groups = _with(groups, _UNAUTHENTICATED)
        elif _UNAUTHENTICATED not in groups:
            groups = _with(groups, AUTHENTICATED)
        return User(wanted.name, wanted.uid, groups, wanted.extra)

    async def _check_name(self, mode: _Mode, wanted: User, user: User) -> tuple[str, ...]:
        """Authorize the user name and return its implied groups."""
        group, groups = _AUTHENTICATION if mode.sort else "", wanted.groups
        attributes = RequestAttributes(mode.verb, group, "users", name=wanted.name)
        node, account = _node(wanted.name), _account(wanted.name)
        if mode.sort and node:
            attributes = RequestAttributes(mode.verb, group, "nodes", name="*" if mode is _ASSOCIATED_NODE else node)
            groups = (_NODES,)
        elif account is not None:
            attributes = RequestAttributes(mode.verb, group, "serviceaccounts", namespace=account[0], name=account[1])
            groups = groups or ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
        await self._authorizer.check(user, attributes)
        return groups

    async def _check_groups(self, mode: _Mode, groups: tuple[str, ...], user: User) -> None:
        attributes = RequestAttributes(mode.verb, _AUTHENTICATION if mode.sort else "", "groups")
        if mode.sort:
            if "" in groups:
                raise attributes.refusal(user, "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                reason = f"impersonating the {MASTERS} group is not allowed"
                raise attributes._replace(name=MASTERS).refusal(user, reason)
            if len(groups) >= MANY and (await self._authorizer.decide(user, attributes._replace(name="*"))).allowed:
                return
        for group in groups:
            await self._authorizer.check(user, attributes._replace(name=group))

    async def _check_extra(self, mode: _Mode, extra: Mapping[str, Sequence[str]], user: User) -> None:
        attributes = RequestAttributes(mode.verb, _AUTHENTICATION, "userextras")
        if mode.sort:
            fault = _extra_fault(extra)
            if fault:
                raise attributes.refusal(user, fault)
            many = len(extra) >= MANY or sum(map(len, extra.values())) >= MANY
            if many and (await self._authorizer.decide(user, attributes._replace(subresource="*", name="*"))).allowed:
                return
        for key, values in extra.items():
            for value in values:
                await self._authorizer.check(user, attributes._replace(subresource=key, name=value))


def _wanted(request: Request) -> User | None:
    """The user in the impersonation headers; None without any."""
    headers, repeated = request.headers, request.repeated

    def values(name: str) -> tuple[str, ...]:
        return tuple(repeated.get(name) or ((headers[name],) if name in headers else ()))

    extra: dict[str, tuple[str, ...]] = {}
    for name in headers:
        if name.startswith(_EXTRA):
            key = _unescaped(name.removeprefix(_EXTRA))
            extra[key] = extra.get(key, ()) + values(name)
    user, uid = headers.get("impersonate-user", ""), headers.get("impersonate-uid", "")
    wanted = User(user, uid, values("impersonate-group"), extra)
    if wanted.name:
        return wanted
    if wanted.uid or wanted.groups or wanted.extra:
        raise BadRequest.of(f"requested {_go(wanted)} without impersonating a user name")
    return None


def _unescaped(key: str) -> str:
    return key if _BAD_ESCAPE.search(key) else unquote(key)


def _go(user: User) -> str:
    """Format a user as Go's `%#v`."""

    def strings(values: Sequence[str]) -> str:
        return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"

    extra = ", ".join(f"{quote(key)}:{strings(user.extra[key])}" for key in sorted(user.extra))
    shown = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    about = f"Name:{quote(user.name)}, UID:{quote(user.uid)}, Groups:{strings(user.groups)}, Extra:{shown}"
    return f"&user.DefaultInfo{{{about}}}"


def _with(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return groups if group in groups else (*groups, group)


def _extra_fault(extra: Mapping[str, Sequence[str]]) -> str:
    """Why constrained modes reject the extra values, "" if they do not."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        faults = validate_domain_prefixed_path(key, Path("extra", "key"))
        if faults:
            return f"impersonating an invalid key in extra is not allowed: {aggregated(list(map(str, faults)))}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


# Kinds of users


def _node(name: str) -> str:
    """The node name in a user name, "" if it is not a node's."""
    node = name.removeprefix("system:node:")
    return "" if node == name or names.name_is_dns_subdomain(node) else node


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account in a user name; None if it is not a service account's."""
    rest = name.removeprefix("system:serviceaccount:")
    namespace, _, account = rest.partition(":")
    if rest == name or names.name_is_dns_label(namespace) or names.name_is_dns_subdomain(account):
        return None
    return namespace, account


def _name_alone(wanted: User) -> bool:
    return not (wanted.uid or wanted.groups or wanted.extra)


def _is_own_node(wanted: User, user: User) -> bool:
    node = _node(wanted.name)
    return (
        bool(node)
        and _name_alone(wanted)
        and _account(user.name) is not None
        and tuple(user.extra.get(_NODE_OF, ())) == (node,)
    )


_ASSOCIATED_NODE = _Mode("associated-node", _is_own_node)
_MODES = (
    _ASSOCIATED_NODE,
    _Mode("arbitrary-node", lambda wanted, _: _name_alone(wanted) and bool(_node(wanted.name))),
    _Mode("serviceaccount", lambda wanted, _: _name_alone(wanted) and _account(wanted.name) is not None),
    _Mode("user-info", lambda wanted, _: not _node(wanted.name) and _account(wanted.name) is None),
    _Mode("", lambda _wanted, _user: True),
)
