"""Admission handlers: `@on.validate` and `@on.mutate` as hooks of `ostinato.webhook`.

    @on.validate(Site)
    def check(spec, warnings, **_):
        if not spec["text"]:
            raise AdmissionError("spec.text: must not be empty")

    webhooks = on.webhooks(__name__, endpoint=ServiceEndpoint("sites", "sites-webhooks"))

The server, its certificates and the webhook configurations are those of `Webhooks`.
"""

from __future__ import annotations

import re
from typing import Any

from ostinato.api.errors import APIError
from ostinato.api.patch import merge_patch
from ostinato.api.status import Status
from ostinato.frontends.handlers.handler import Handler
from ostinato.frontends.handlers.objects.diffs import diff
from ostinato.frontends.handlers.objects.filters import Change
from ostinato.frontends.handlers.objects.patching import Patch, merged, pruned, transformed
from ostinato.frontends.handlers.objects.views import View, resolve
from ostinato.frontends.handlers.resources import kind_info
from ostinato.frontends.handlers.running.calls import Kwargs, object_arguments, selected
from ostinato.frontends.handlers.running.memory import Memo
from ostinato.webhook import AdmissionHook, AdmissionRequest

Json = dict[str, Any]


class AdmissionError(Exception):
    """Rejects the object: `raise AdmissionError("too large", code=400)`. The code defaults to 403."""

    def __init__(self, message: str = "", code: int = 403) -> None:
        super().__init__(message)
        self.code = code


def hook_of(handler: Handler) -> AdmissionHook:
    """Return the hook of a handler."""
    view = None if handler.resources is None else handler.resources.view
    if view is None:
        raise TypeError(
            f"{handler.place}: {handler.id}: the rules of a webhook need the whole kind, not {handler.resources}; "
            f'write @on.{handler.form}(Site) or @on.{handler.form}(Unstructured.of("example.dev/v1", "Site"))'
        )
    mutating, options = handler.form == "mutate", handler.options
    part = re.sub(r"[^a-z0-9]+", "-", handler.id.lower()).strip("-") or "handler"
    info = kind_info(view)
    chosen: Any = {
        "path": f"/{handler.form}/{info.plural}-{info.gvk.version}-{info.gvk.group.replace('.', '-') or 'core'}/{part}",
        "name": f"{part}.{handler.form}.{info.plural}.{info.gvk.group or 'core'}",
        "side_effects": "NoneOnDryRun" if options.side_effects else "None",
        "failure_policy": "Ignore" if options.ignore_failures else "Fail",
    }
    if options.operations:
        chosen["operations"] = options.operations
    if options.subresource:
        chosen["subresources"] = [options.subresource]
    return AdmissionHook(_function(handler), view.gvk, mutating=mutating, options=chosen)


def _function(handler: Handler) -> Any:
    """Return the function of the hook: async if that of the handler is, else plain, so that it runs in a thread."""

    async def review_async(body: dict[str, Any], old: Any, request: AdmissionRequest) -> Any:
        call = _Review(handler, body, old, request)
        if call.is_wanted:
            with call:
                await handler.function(**call.arguments)
        return call.result()

    def review(body: dict[str, Any], old: Any, request: AdmissionRequest) -> Any:
        call = _Review(handler, body, old, request)
        if call.is_wanted:
            with call:
                handler.function(**call.arguments)
        return call.result()

    found = review_async if handler.is_async else review
    found.__qualname__ = handler.id
    return found


class _Review:
    """One call of an admission handler."""

    def __init__(self, handler: Handler, body: Json, old: Json | None, request: AdmissionRequest) -> None:
        self._handler = handler
        self._body = body
        self._request = request
        self._warnings: list[str] = []
        self._patch = Patch()
        path = handler.filters.field
        everything: Kwargs = {
            **object_arguments(body),
            "patch": self._patch,
            "memo": Memo(),
            "param": handler.param,
            "reason": handler.form,
            "warnings": self._warnings,
            "dryrun": request.dry_run,
            "operation": request.operation,
            "subresource": request.subresource or None,
            "userinfo": {"username": request.user.username, "uid": request.user.uid, "groups": [*request.user.groups]},
            "headers": {},
            "sslpeer": {},
            "old": resolve(old, path) if path else (None if old is None else View(old)),
            "new": resolve(body, path) if path else View(body),
            "diff": diff(old, body),
        }
        wanted = handler.options.subresource
        self.is_wanted = wanted in ("*", request.subresource or None) and handler.filters.match_object(
            Change(body, lambda: everything)
        )
        self.arguments = selected(handler.function, everything)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for text in self._warnings:
            self._request.warn(str(text))
        if isinstance(error, AdmissionError):
            status = Status(status="Failure", message=str(error), code=error.code)
            raise APIError(status) from error

    def result(self) -> Any:
        if self._handler.form != "mutate":
            return None
        change = pruned(self._patch)
        if self._patch.fns:
            change = merged(change, transformed(self._body, self._patch.fns))
        return merge_patch(self._body, change) if change else None
