"""From a request to its user and flow: authentication, impersonation, classification, authorization.

With a store that other servers write to, a rejection may be due to writes that are not effective here yet: the request
is then decided once more when they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.api.errors import APIError
from ostinato.server.access.attributes import attributes_of
from ostinato.server.access.authorization.authorizer import MASTERS, refuse
from ostinato.server.access.impersonation import Impersonation, impersonates
from ostinato.server.derived_state import DerivedState
from ostinato.server.flow.control import FlowControl
from ostinato.server.flow.flow import Flow
from ostinato.server.request import Request
from ostinato.server.request.route import Route

if TYPE_CHECKING:
    from ostinato.server.access.authentication.authenticator import Authenticator
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.audit.auditor import Auditor


class RequestAuthorization:
    def __init__(
        self,
        authenticator: Authenticator,
        authorizer: Authorizer,
        flow: FlowControl,
        derived: DerivedState,
        auditor: Auditor | None,
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._impersonation = Impersonation(authorizer)
        self._flow = flow
        self._derived = derived
        self._auditor = auditor

    def authorize_now(self, request: Request, route: Route | None) -> Flow | None:
        """Authenticate, classify and authorize a request without awaiting; None if that is not possible."""
        if impersonates(request.headers):
            return None
        user = self._authenticator.authenticate_now(request)
        if user is None:
            return None
        flow = self._flow.classify(request, user, route)
        if MASTERS not in user.groups:
            asked = attributes_of(request, route)
            decision = self._authorizer.decide_now(user, asked)
            if decision is None:
                return None
            if not decision.allowed:
                refuse(user, asked, decision)
        request.user = user
        return flow

    async def authorize(self, request: Request, route: Route | None) -> Flow:
        """Authenticate the request, impersonate, classify, authorize; with audit events from authentication on."""
        if self._auditor is not None:
            return await self._authorize_audited(self._auditor, request, route)
        age = self._derived.age
        try:
            return self.authorize_now(request, route) or await self._authorize(request, route)
        except APIError as error:
            if not await self._derived.was_behind(age, error.code):
                raise
        return await self._authorize(request, route)

    async def _authorize(self, request: Request, route: Route | None) -> Flow:
        user = await self._authenticator.authenticate(request)
        asked = attributes_of(request, route)
        if impersonates(request.headers):
            user = await self._impersonation.user(request, user, asked)
        request.user = user
        flow = self._flow.classify(request, user, route)
        if MASTERS not in user.groups:
            await self._authorizer.check(user, asked)
        return flow

    async def _authorize_audited(self, auditor: Auditor, request: Request, route: Route | None) -> Flow:
        asked = attributes_of(request, route)
        annotations: dict[str, str] = {}
        age = self._derived.age
        try:
            try:
                user = await self._authenticator.authenticate(request, annotations)
            except APIError as error:
                if not await self._derived.was_behind(age, error.code):
                    raise
                user = await self._authenticator.authenticate(request, annotations)
        except APIError:
            auditor.unauthenticated(request, asked, route)
            raise
        await auditor.received(request, user, asked, route, annotations)
        if impersonates(request.headers):
            user = await self._impersonation.user(request, user, asked)
        request.user = user
        flow = self._flow.classify(request, user, route)
        decision = await self._authorizer.decide(user, asked)
        if not decision.allowed and await self._derived.was_behind(age, 403):
            decision = await self._authorizer.decide(user, asked)
        auditor.decided(request, decision.reason, allowed=decision.allowed)
        if not decision.allowed:
            refuse(user, asked, decision)
        return flow
