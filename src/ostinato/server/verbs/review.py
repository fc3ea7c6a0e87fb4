"""Reviews: questions about users and their rights. They are answered, not stored.

Until there are roles, the members of `system:masters` may do everything and nobody else anything: `may` is where
that is decided.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial

from ostinato.api.errors import BadRequest, Invalid, Unauthorized
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.gvk import GroupKind
from ostinato.server import body
from ostinato.server.negotiate import body_media, form_of
from ostinato.server.options import write_options
from ostinato.server.present import value_response
from ostinato.server.request import Request, Response, User
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.workloads import GoStruct
from ostinato.server.verbs import write
from ostinato.server.verbs.context import Context

# Answers a review: gets it as the client sent it, gives back its status.
Answer = Callable[[Context, Json], Json]
Authenticate = Callable[[Request], User]

_SPEC = Path("spec")
_KIND = GroupKind("authorization.k8s.io", "")  # refusals name no kind


def install_reviews(registry: Registry, authenticate: Authenticate) -> None:
    """Let the registry's reviews be answered."""
    answers: dict[tuple[str, str], Answer] = {
        ("authentication.k8s.io", "selfsubjectreviews"): _who_am_i,
        ("authentication.k8s.io", "tokenreviews"): partial(_whose_token, authenticate),
        ("authorization.k8s.io", "selfsubjectaccessreviews"): _may_i,
        ("authorization.k8s.io", "subjectaccessreviews"): _may_they,
        ("authorization.k8s.io", "localsubjectaccessreviews"): _may_they_here,
        ("authorization.k8s.io", "selfsubjectrulesreviews"): _my_rules,
    }
    for (group, name), answer in answers.items():
        resource = registry.get(group, "v1", name)
        assert resource is not None
        resource.handlers["", "create"] = _verb(answer)


def _verb(answer: Answer) -> Callable[[Context], Awaitable[Response]]:
    async def review(context: Context) -> Response:
        request, resource = context.request, context.resource
        form = form_of(request, resource)
        data = await request.read()
        options = write_options(request, "CreateOptions")
        obj = body.read(request, resource, data, body_media(request), options)
        write.fit_namespace(context, obj)
        obj["status"] = answer(context, obj)
        return value_response(obj, form, 201)

    return review


def may(user: Collection[str]) -> bool:
    """Whether a user of these groups may do something, whatever it is."""
    return "system:masters" in user


def _user(context: Context) -> User:
    user = context.request.user
    assert user is not None
    return user


def _info(user: User) -> Json:
    told = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in told.items() if value}


def _who_am_i(context: Context, review: Json) -> Json:
    review["metadata"] = {"creationTimestamp": write.now(context.world.clock)}
    return {"userInfo": _info(_user(context))}


def _whose_token(authenticate: Authenticate, context: Context, review: Json) -> Json:  # noqa: ARG001
    token = review["spec"].get("token", "")
    if not token:
        raise BadRequest.of("token is required for TokenReview in authentication")
    try:
        user = authenticate(Request("GET", "/", headers={"authorization": f"Bearer {token}"}))
    except Unauthorized:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _info(user)}


def _may_i(context: Context, review: Json) -> Json:
    _refuse(_metadata_errors(review, "must be empty", ()), _attributes_errors(review["spec"]))
    return _verdict(_user(context).groups)


def _may_they(context: Context, review: Json) -> Json:  # noqa: ARG001
    spec = review["spec"]
    _refuse(_metadata_errors(review, "must be empty", ()), _attributes_errors(spec) + _subject_errors(spec))
    return _verdict(spec.get("groups") or ())


def _may_they_here(context: Context, review: Json) -> Json:
    spec, namespace = review["spec"], context.route.namespace
    errors = _attributes_errors(spec) + _subject_errors(spec)
    attributes = spec.get("resourceAttributes")
    if attributes is not None and attributes.get("namespace", "") != namespace:
        path = Path("spec.resourceAttributes.namespace")
        errors.append(FieldError.invalid(path, attributes.get("namespace", ""), "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        detail = "disallowed on this kind of request"
        errors.append(FieldError.invalid(Path("spec.nonResourceAttributes"), _path(spec), detail))
    _refuse(_metadata_errors(review, "must be empty except for namespace", ("namespace",)), errors)
    return _verdict(spec.get("groups") or ())


def _my_rules(context: Context, review: Json) -> Json:
    if not review["spec"].get("namespace"):
        raise BadRequest.of("no namespace on request")
    review["spec"] = {}
    all_rights = may(_user(context).groups)
    resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}] if all_rights else []
    others = [{"verbs": ["*"], "nonResourceURLs": ["*"]}] if all_rights else []
    return {"resourceRules": resources, "nonResourceRules": others, "incomplete": False}


def _verdict(groups: Collection[str]) -> Json:
    return {"allowed": may(groups)}


def _refuse(about_metadata: list[FieldError], about_spec: list[FieldError]) -> None:
    errors = about_spec + about_metadata
    if errors:
        raise Invalid.of(_KIND, "", errors)


def _metadata_errors(review: Json, detail: str, allowed: tuple[str, ...]) -> list[FieldError]:
    given = {key: value for key, value in review["metadata"].items() if key not in (*allowed, "managedFields")}
    return [FieldError.invalid(Path("metadata"), review["metadata"], detail)] if given else []


def _attributes_errors(spec: Json) -> list[FieldError]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [FieldError.invalid(_SPEC.child("nonResourceAttributes"), _path(spec), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [FieldError.invalid(_SPEC.child("resourceAttributes"), None, detail)]
    return []


def _path(spec: Json) -> GoStruct:
    attributes = spec["nonResourceAttributes"]
    return GoStruct(Path=attributes.get("path", ""), Verb=attributes.get("verb", ""))


def _subject_errors(spec: Json) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [FieldError.invalid(_SPEC.child("user"), "", "at least one of user or group must be specified")]
