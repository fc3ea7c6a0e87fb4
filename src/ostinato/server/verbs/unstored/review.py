"""Token and subject reviews."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from ostinato.api.errors import BadRequest
from ostinato.server.access.authentication.authenticator import Authenticator
from ostinato.server.access.authentication.identity import RefusedToken
from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.request import Response, User, body
from ostinato.server.request.context import Context, Handlers
from ostinato.server.request.negotiate import body_media, form_of
from ostinato.server.request.options import write_options
from ostinato.server.request.present import value_response
from ostinato.server.resources.strategy import Json
from ostinato.server.verbs import write
from ostinato.server.verbs.unstored.access_review import AccessReviews

# Handles a review: takes it as the client sent it, returns its status.
Answer = Callable[[Context, Json], Awaitable[Json]]


def review_handlers(authenticator: Authenticator, authorizer: Authorizer) -> Handlers:
    """Handlers of token, subject and access reviews."""
    access = AccessReviews(authorizer)
    answers: dict[tuple[str, str], Answer] = {
        ("authentication.k8s.io", "selfsubjectreviews"): _self_subject_review,
        ("authentication.k8s.io", "tokenreviews"): partial(_token_review, authenticator),
        ("authorization.k8s.io", "selfsubjectaccessreviews"): access.self_subject_access,
        ("authorization.k8s.io", "subjectaccessreviews"): access.subject_access,
        ("authorization.k8s.io", "localsubjectaccessreviews"): access.local_subject_access,
        ("authorization.k8s.io", "selfsubjectrulesreviews"): access.self_subject_rules,
    }
    return {(group, name, "", "create"): _verb(answer) for (group, name), answer in answers.items()}


def _verb(answer: Answer) -> Callable[[Context], Awaitable[Response]]:
    async def review(context: Context) -> Response:
        request, resource = context.request, context.resource
        form = form_of(request, resource)
        data = await request.read()
        options = write_options(request, "CreateOptions")
        obj = body.read(request, resource, data, body_media(request), options)
        write.set_namespace(context, obj)
        obj = write.with_managed_fields(context, None, obj, options)
        await context.admission.mutate(context, "CREATE", obj, None, options)
        await context.admission.validate(context, "CREATE", obj, None, options)
        obj["status"] = await answer(context, obj)
        kind = {"kind": resource.gvk.kind, "apiVersion": resource.gvk.api_version}
        return value_response({**kind, **obj}, form, 201)

    return review


def _info(user: User) -> Json:
    user_info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in user_info.items() if value}


async def _self_subject_review(context: Context, review: Json) -> Json:
    review["metadata"] = {"creationTimestamp": write.now(context.world.clock)}
    assert context.request.user is not None
    return {"userInfo": _info(context.request.user)}


async def _token_review(authenticator: Authenticator, context: Context, review: Json) -> Json:  # noqa: ARG001
    token = review["spec"].get("token", "")
    if not token:
        raise BadRequest.of("token is required for TokenReview in authentication")
    try:
        known = await authenticator.authenticate_token(
            token, review["spec"].get("audiences") or authenticator.audiences
        )
    except RefusedToken as error:
        return {"user": {}, "error": str(error)}
    return {"authenticated": True, "user": _info(known.user), "audiences": list(known.audiences)}
