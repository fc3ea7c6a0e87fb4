"""Audiences of tokens that a kubelet may request: those in its Pod's volumes or their CSI drivers.

Other audiences need the verb `request-serviceaccounts-token-audience` on the audience as a resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.messages import aggregated
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.request.context import Context
    from ostinato.server.resources.registry import Registry

_VERB = "request-serviceaccounts-token-audience"


class _UnknownError(Exception):
    """The driver of a volume cannot be determined."""


class TokenAudiences:
    def __init__(self, registry: Registry, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._drivers = Lister(registry, "storage.k8s.io", "v1", "csidrivers")
        self._claims = Lister(registry, "", "v1", "persistentvolumeclaims")
        self._volumes = Lister(registry, "", "v1", "persistentvolumes")

    async def fault(self, context: Context, request: Json, pod: Json) -> str:
        """Why the kubelet may not request the token, "" if it may."""
        audiences = request["spec"].get("audiences") or [""]
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0]
        try:
            if self._names(pod, audience):
                return ""
        except _UnknownError as error:
            return f"error validating audience {quote(audience)}: {error}"
        route, user = context.route, context.request.user
        assert user is not None
        attributes = RequestAttributes(_VERB, "", audience, namespace=route.namespace, name=route.name, version="v1")
        decision = await self._authorizer.decide(user, attributes)
        if decision.allowed:
            return ""
        missing = f"audience {quote(audience)} not found in pod spec volume"
        if decision.error:
            return f"{missing}, error authorizing {user.name} to request tokens for this audience: {decision.error}"
        return f"{missing}, {user.name} is not authorized to request tokens for this audience"

    def _names(self, pod: Json, audience: str) -> bool:
        """Whether a volume of the Pod uses tokens for the audience; _UnknownError if a driver cannot be determined."""
        faults: list[NotFound] = []
        for volume in pod["spec"].get("volumes") or ():
            for source in (volume.get("projected") or {}).get("sources") or ():
                token = source.get("serviceAccountToken")
                if token is not None and token.get("audience", "") == audience:
                    return True
            try:
                driver = self._driver(pod, volume)
                if driver and self._has(driver, audience):
                    return True
            except NotFound as error:
                faults.append(error)
        if faults:
            raise _UnknownError(aggregated([str(each) for each in faults]))
        return False

    def _driver(self, pod: Json, volume: Json) -> str:
        """The name of the CSI driver of a volume, "" if it has none."""
        if volume.get("csi") is not None:
            named: str = volume["csi"].get("driver", "")
            return named
        metadata, claim = pod["metadata"], ""
        if volume.get("ephemeral") is not None:
            claim = f"{metadata['name']}-{volume['name']}"
        elif volume.get("persistentVolumeClaim") is not None:
            claim = volume["persistentVolumeClaim"].get("claimName", "")
        if not claim:
            return ""
        found = self._claims.get(claim, metadata["namespace"])
        if found is None:
            raise NotFound.of(GroupResource("", "persistentvolumeclaim"), claim)
        name = found["spec"].get("volumeName", "")
        bound = self._volumes.get(name)
        if bound is None:
            raise NotFound.of(GroupResource("", "persistentvolume"), name)
        driver: str = (bound["spec"].get("csi") or {}).get("driver", "")
        return driver

    def _has(self, driver: str, audience: str) -> bool:
        found = self._drivers.get(driver)
        if found is None:
            raise NotFound.of(GroupResource("storage.k8s.io", "csidriver"), driver)
        return any(each.get("audience", "") == audience for each in found["spec"].get("tokenRequests") or ())
