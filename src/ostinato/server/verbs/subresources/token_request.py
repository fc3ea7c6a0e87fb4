"""serviceaccounts/token: issue a ServiceAccount token, optionally bound to a Pod, a Secret or a Node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ostinato.api.errors import BadRequest, Conflict, Invalid, NotFound
from ostinato.api.gvk import GroupResource, GroupVersion, GroupVersionKind
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.access.authentication.assembly import Authentication
from ostinato.server.request import Response, body
from ostinato.server.request.context import Context, Handlers
from ostinato.server.request.negotiate import body_media, form_of
from ostinato.server.request.options import write_options
from ostinato.server.request.present import value_response
from ostinato.server.resources.body_resource import BodyResource
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.verbs import write

TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_SHORTEST, _LONGEST = 600, 1 << 32  # seconds
_USUAL = 3600
_WARN_ONLY = 3607  # lifetime of tokens that admission adds to Pods
_EXTENDED = 365 * 24 * 3600
_BINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def token_handlers(authentication: Authentication) -> Handlers:
    """The handler of serviceaccounts/token."""
    requests = BodyResource(authentication.kinds["ServiceAccount"].resource.gvr, TOKEN_REQUEST)
    return {("", "serviceaccounts", "token", "create"): _issues(authentication, requests)}


def _issues(authentication: Authentication, requests: Resource) -> Callable[[Context], Awaitable[Response]]:
    tokens, kinds, settings = authentication.account_tokens, authentication.kinds, authentication.settings.accounts

    async def issue(context: Context) -> Response:
        request = context.request
        form = form_of(request, requests)
        options = write_options(request, "CreateOptions")
        asked = body.read(request, requests, await request.read(), body_media(request), options)
        write.set_namespace(context, asked)
        await context.admission.mutate(context, "CREATE", asked, None, options)
        account = _account(context, asked["metadata"], kinds["ServiceAccount"])
        spec = _complete(asked, account, context, tokens.audiences)
        await context.admission.validate(context, "CREATE", asked, None, options)
        bound = _bound(context, spec.get("boundObjectRef"), kinds)
        seconds = _shortened(context, spec, settings.max_expiration)
        now = int(context.world.clock.wall())
        lives, warning = seconds, {}
        is_own = set(spec["audiences"]) <= set(tokens.audiences)
        if settings.extend_expiration and "pod" in bound and seconds == _WARN_ONLY and is_own:
            lives, warning = _EXTENDED, {"warnafter": now + seconds}
        claims: dict[str, Any] = {
            "aud": spec["audiences"],
            "exp": now + lives,
            "iat": now,
            "jti": context.world.ids.uid(),
            "kubernetes.io": {
                "namespace": context.route.namespace,
                **bound,
                "serviceaccount": {"name": context.route.name, "uid": account["uid"]},
                **warning,
            },
            "nbf": now,
            "sub": f"system:serviceaccount:{context.route.namespace}:{context.route.name}",
        }
        request.annotate("authentication.kubernetes.io/issued-credential-id", f"JTI={claims['jti']}")
        asked["status"] = {"token": tokens.sign(claims), "expirationTimestamp": write.timestamp(now + seconds)}
        return value_response(asked, form, 201)

    return issue


def _shortened(context: Context, spec: Json, longest: int) -> int:
    """The lifetime of a token in seconds: as requested, up to the operator's limit."""
    asked: int = spec["expirationSeconds"]
    if not 0 < longest < asked:
        return asked
    context.request.warnings.append(f"requested expiration of {asked} seconds shortened to {longest} seconds")
    spec["expirationSeconds"] = longest
    return longest


def _account(context: Context, given: Json, accounts: Lister) -> Json:
    """The metadata of the requested account."""
    route = context.route
    if given.get("name") and given["name"] != route.name:
        detail = "must match the service account name if specified"
        fault = FieldError.invalid(Path("metadata", "name"), given["name"], detail)
        raise Invalid.of(TOKEN_REQUEST.group_kind, route.name, [fault])
    account = accounts.get(route.name, route.namespace)
    if account is None:
        raise NotFound.of(GroupResource("", "serviceaccounts"), route.name)
    found: Json = account["metadata"]
    if given.get("uid") and given["uid"] != found["uid"]:
        why = f"the UID in the token request ({given['uid']}) does not match the UID of the service account"
        resource = GroupResource(TOKEN_REQUEST.group, TOKEN_REQUEST.kind)
        raise Conflict.of(resource, route.name, f"{why} ({found['uid']})")
    return found


def _complete(asked: Json, account: Json, context: Context, audiences: Sequence[str]) -> Json:
    """Validate and default the spec."""
    spec: Json = asked.setdefault("spec", {})
    if not spec.get("audiences"):
        spec["audiences"] = list(audiences)
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _USUAL
    spec.setdefault("boundObjectRef", None)
    now = write.now(context.world.clock)
    asked["metadata"].update(
        name=context.route.name, namespace=context.route.namespace, uid=account["uid"], creationTimestamp=now
    )
    seconds, path, errors = spec["expirationSeconds"], Path("spec", "expirationSeconds"), []
    if seconds < _SHORTEST:
        errors.append(FieldError.invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST:
        errors.append(FieldError.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    if errors:
        raise Invalid.of(TOKEN_REQUEST.group_kind, "", errors)
    return spec


def _bound(context: Context, reference: Json | None, kinds: Mapping[str, Lister]) -> Json:
    """The claims about the object that a token is bound to."""
    if reference is None:
        return {}
    kind, name = reference.get("kind", ""), reference.get("name", "")
    try:
        version = GroupVersion.parse(reference.get("apiVersion", ""))
    except ValueError:
        version = GroupVersion("", "")  # an invalid apiVersion means the core group
    if version.group or kind not in _BINDS:
        shown = f"{version.group}/{version.version}, Kind={kind}"
        raise BadRequest.of(f"cannot bind token to object of type {shown}")
    if not name:
        raise BadRequest.of("Name parameter required.")
    found = kinds[kind].get(name, "" if kind == "Node" else context.route.namespace)
    if found is None:
        raise NotFound.of(GroupResource("", _BINDS[kind]), name)
    account = context.route.name
    if kind == "Pod" and found["spec"].get("serviceAccountName", "") != account:
        rule = "to pod running with different serviceaccount name."
        raise BadRequest.of(f'cannot bind token for serviceaccount "{account}" {rule}')
    uid = found["metadata"]["uid"]
    if reference.get("uid") and reference["uid"] != uid:
        why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
        text = f"{why} The object might have been deleted and then recreated"
        raise Conflict.of(GroupResource(version.group, kind), name, text)
    bound: Json = {"name": name, "uid": uid}
    node = found["spec"].get("nodeName") if kind == "Pod" else None
    if not node:
        return {kind.lower(): bound}
    there = kinds["Node"].get(node)
    return {"node": {"name": node, **({"uid": there["metadata"]["uid"]} if there else {})}, "pod": bound}
