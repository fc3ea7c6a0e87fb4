"""Whatever a webhook answers, the server says what is wrong with it, and goes on."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stage.api import Api, asking
from tests.unit.server.admission.webhooks.test_webhooks import MAPS, config_map, configure, hook
from tests.unit.server.resources.custom.test_conversion_webhook import SECOND, Hook, play, second

Json = dict[str, Any]

NAMES = st.sampled_from(
    ["metadata", "labels", "annotations", "name", "kind", "apiVersion", "spec", "status", "message", "code", "details"]
)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.floats(allow_nan=False, width=16)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "test", "move", "copy"])},
    optional={
        "path": st.sampled_from(["", "/", "/metadata", "/metadata/labels", "/data/a", "/kind", "/spec"]),
        "from": st.sampled_from(["", "/metadata", "/data"]),
        "value": VALUES,
    },
)
RESPONSES = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "uid": VALUES | st.just("${uid}"),
        "allowed": VALUES | st.booleans(),
        "status": VALUES,
        "result": VALUES | st.just({"status": "Success"}),
        "convertedObjects": VALUES | st.lists(VALUES, min_size=1, max_size=1),
        "warnings": VALUES | st.lists(SCALARS),
        "patchType": VALUES | st.just("JSONPatch"),
        "patch": VALUES
        | st.lists(OPERATIONS, max_size=3).map(lambda each: base64.b64encode(json.dumps(each).encode()).decode()),
    },
)
REVIEWS = RESPONSES.map(lambda response: {"response": response}) | VALUES
MADE_AN_ERROR = "internal error; see the server log"


def answered(data: bytes, response: Any) -> bytes:
    """The answer to a review: of its kind and version, if it is an object."""
    raw = json.loads(data)
    if not isinstance(response, dict):
        return json.dumps(response).encode()
    kind = {"kind": raw["kind"], "apiVersion": raw["apiVersion"]}
    return json.dumps({**kind, **response}).replace("${uid}", raw["request"]["uid"]).encode()


@settings(max_examples=150, deadline=None)
@given(REVIEWS)
def test_of_admission(response: Any) -> None:
    @asking
    async def test(api: Api) -> None:
        async def ask(client: Json, review: bytes, seconds: int) -> bytes:
            return answered(review, response)

        api.server.webhooks.override = ask
        await configure(api, "mutating", hook("m"))
        await configure(api, "validating", hook("v"))
        answer = await api.post(MAPS, config_map())
        assert MADE_AN_ERROR not in answer.message
        assert answer.code == 201 or answer.message

    test()


@settings(max_examples=150, deadline=None)
@given(REVIEWS)
def test_of_conversion(response: Any) -> None:
    async def talk(api: Any, honest: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x"))

        async def ask(client: Json, review: bytes, seconds: int) -> bytes:
            return answered(review, response)

        api.server.webhooks.override = ask
        for path in (f"{SECOND.replace('/v2/', '/v1/')}/w", SECOND.replace("/v2/", "/v1/")):
            answer = await api("GET", path)
            assert MADE_AN_ERROR not in answer.text
            assert answer.code in (200, 429, 500)

    play(talk)
