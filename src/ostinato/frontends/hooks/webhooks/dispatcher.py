"""Dispatcher: answers AdmissionReviews and ConversionReviews by runs of hooks, outside of the queues.

- A hook that fails, or gives no answer, rejects the request: the message is "Hook failed".
- A ConversionReview is answered by the steps of a chain, each with the objects that the one before has returned.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec

from ostinato.frontends.hooks.config.bindings import AdmissionBinding, ConversionBinding
from ostinato.frontends.hooks.contexts import Context
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.running.outcome import Outcome
from ostinato.frontends.hooks.webhooks.chain import Chains
from ostinato.webhook.conversion import failed_review, read_conversion
from ostinato.webhook.dispatch import Dispatcher, WebhookRequest, WebhookResponse
from ostinato.webhook.request import ReviewError, read_review
from ostinato.webhook.response import encode_review, errored, sanitize_warnings
from ostinato.world import World

Execute = Callable[[Hook, list[Context], str, str], Awaitable[Outcome]]
"""Runs a hook: with contexts, queue and binding."""

CONVERSION: Final = "/convert/"  # and the name of the CustomResourceDefinition
_QUEUE: Final = "webhooks"
_ALWAYS: Final = dict.fromkeys(("object", "oldObject", "options"))  # null rather than absent, as in Go
_logger = logging.getLogger("ostinato.frontends")

_Conversion = tuple[Hook, ConversionBinding]


def admission_path(hook: Hook, binding: AdmissionBinding) -> str:
    """Return the path of a binding; distinct ones have distinct paths."""
    kind = "mutating" if binding.mutating else "validating"
    name = "".join(each if each.isalnum() or each in "-_" else f".{ord(each):x}." for each in hook.name)
    return f"/hooks/{kind}/{name}/{binding.name}"


class HookDispatcher(Dispatcher):
    def __init__(self, world: World, execute: Execute) -> None:
        self._execute = execute
        self._admission: dict[str, tuple[Hook, AdmissionBinding]] = {}
        self._chains: dict[str, Chains[_Conversion]] = {}
        super().__init__(world)

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self._admission, *(CONVERSION + each for each in self._chains))

    @property
    def definitions(self) -> tuple[str, ...]:
        """The names of the CustomResourceDefinitions with conversions."""
        return tuple(self._chains)

    def use(self, hooks: Iterable[Hook]) -> None:
        """Answer with these hooks from now on."""
        self._admission.clear()
        self._chains.clear()
        for hook in hooks:
            for binding in hook.config.admission:
                self._admission[admission_path(hook, binding)] = hook, binding
            for conversion in hook.config.conversions:
                chains = self._chains.setdefault(conversion.definition, Chains())
                for before, after in conversion.rules:
                    chains.add(before, after, (hook, conversion))
        for path in self.paths:
            self.statistics.expect(path)

    async def _admit(self, request: WebhookRequest) -> WebhookResponse:
        if request.path.startswith(CONVERSION):
            return await self._convert(request)
        seconds, uid = self._seconds(request), ""
        try:
            async with self._world.clock.timeout(seconds), self._slots:
                body = await self._body(request, self._limits.body)
                uid = read_review(body).uid
                return await self._answer(request.path, body, uid)
        except ReviewError as error:
            _logger.warning("invalid review path=%s error=%s", request.path, error)
            answer = encode_review(errored(error.code, str(error)), error.uid, api_version=error.api_version)
            return WebhookResponse(200, answer)
        except TimeoutError:
            _logger.error("review timed out path=%s seconds=%g", request.path, seconds)
            return WebhookResponse(200, encode_review(errored(504, f"hook timed out after {seconds:g} s"), uid))

    async def _answer(self, path: str, body: bytes, uid: str) -> WebhookResponse:
        hook, binding = self._admission[path]
        context = Context(
            source="kubernetesMutating" if binding.mutating else "kubernetesValidating",
            binding=binding.name,
            group=binding.group,
            include_snapshots=binding.include_snapshots,
            review=_request_only(body),
        )
        outcome = await self._executed(hook, context)
        answer = None if outcome is None else outcome.admission
        if answer is None:
            if outcome is not None:
                _logger.error("hook gave no answer hook=%s binding=%s", hook.name, binding.name)
            message = "Hook failed" if outcome is None else f"hook {hook.name} gave no answer"
            return WebhookResponse(200, encode_review(errored(403, message), uid))
        response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
        if not answer.allowed:
            response["status"] = {"metadata": {}, "code": 403, "message": answer.message}
        if warnings := sanitize_warnings(answer.warnings):
            response["warnings"] = warnings
        if answer.patch:
            response.update(patch=answer.patch, patchType="JSONPatch")
        envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        return WebhookResponse(200, msgspec.json.encode(envelope))

    async def _convert(self, request: WebhookRequest) -> WebhookResponse:
        seconds, uid = self._seconds(request), ""
        try:
            async with self._world.clock.timeout(seconds), self._conversion_slots:
                body = await self._body(request, self._limits.conversion_body)
                review = read_conversion(body)
                uid = review.uid
                objects, problem = await self._converted(request.path, review.objects, str(review.version), uid)
        except ReviewError as error:
            return WebhookResponse(200, failed_review(error.uid, str(error), error.api_version))
        except TimeoutError:
            return WebhookResponse(200, failed_review(uid, f"conversion timed out after {seconds:g} s"))
        if problem:
            return WebhookResponse(200, failed_review(uid, problem))
        result = {"metadata": {}, "status": "Success"}
        response = {"uid": uid, "convertedObjects": objects, "result": result}
        envelope = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
        return WebhookResponse(200, msgspec.json.encode(envelope))

    async def _converted(
        self, path: str, objects: list[dict[str, Any]], desired: str, uid: str
    ) -> tuple[list[dict[str, Any]], str]:
        """Return the converted objects, or the problem."""
        definition = path.removeprefix(CONVERSION)
        chains = self._chains[definition]
        for source in _versions(objects):
            for step in chains.find(source, desired):
                hook, binding = step.handler
                review = {"request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects}}
                context = Context(
                    source="conversion",
                    binding=binding.name,
                    group=binding.group,
                    include_snapshots=binding.include_snapshots,
                    review=msgspec.json.encode(review),
                    versions=(step.before, step.after),
                )
                outcome = await self._executed(hook, context)
                answer = None if outcome is None else outcome.conversion
                if answer is None:
                    return [], f"Hook failed to convert to {desired}"
                if answer.failed_message:
                    return [], answer.failed_message
                objects = answer.converted_objects
                if _versions(objects) == [desired]:
                    return objects, ""
        return [], f"Conversion {definition} to {desired} was not successful"

    async def _executed(self, hook: Hook, context: Context) -> Outcome | None:
        try:
            return await self._execute(hook, [context], _QUEUE, context.binding)
        except Exception as error:  # noqa: BLE001 - whatever it is, the request is rejected
            _logger.error("hook failed hook=%s binding=%s error=%s", hook.name, context.binding, error)
            return None


def _request_only(body: bytes) -> bytes:
    """Return the review that the hook reads: the request alone, as shell-operator passes it on."""
    request = msgspec.json.decode(body, type=_Review).request
    return msgspec.json.encode({"request": {**_ALWAYS, **request}})


class _Review(msgspec.Struct):
    request: dict[str, msgspec.Raw]


def _versions(objects: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(each.get("apiVersion", "")) for each in objects))
