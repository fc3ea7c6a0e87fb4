"""Tokens of service accounts: who has one is known by it, for as long as what it names is there."""

from __future__ import annotations

import base64
import json

import pytest
from tests.stage.api import Answer, Api, asking

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
POD = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}}


async def token(api: Api, **spec: object) -> Answer:
    return await api.post(f"{ACCOUNTS}/robot/token", {"spec": spec})


async def known(api: Api, text: str) -> bool:
    review = await api.post(REVIEWS, {"spec": {"token": text}})
    return bool(review.body["status"].get("authenticated"))


async def why(api: Api, text: str) -> str:
    """Why a token is worth nothing."""
    review = await api.post(REVIEWS, {"spec": {"token": text}})
    return str(review.body["status"]["error"])


@asking
async def test_a_token_names_its_account(api: Api) -> None:
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    answer = await token(api)
    assert answer.code == 201
    claims = answer.body["status"]["token"].split(".")[1]
    said = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert said["sub"] == "system:serviceaccount:default:robot"
    assert said["exp"] - said["iat"] == 3600
    assert await known(api, answer.body["status"]["token"])


@asking
async def test_a_modified_token_or_one_for_another_audience_is_rejected(api: Api) -> None:
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    good = (await token(api)).body["status"]["token"]
    head, claims, signature = good.split(".")
    for bad in (f"{head}.{claims}.AAAA", f"{head}.{claims[:-2]}AA.{signature}", "a.b.c", "a.b", "." * 20_000):
        assert not await known(api, bad)
    others = (await token(api, audiences=["others"])).body["status"]["token"]
    assert await why(api, others) == (
        '[invalid bearer token, token audiences ["others"] is invalid for the target audiences '
        '["https://kubernetes.default.svc"]]'
    )
    told = (await api.post(REVIEWS, {"spec": {"token": others, "audiences": ["a", "others"]}})).body["status"]
    assert (told["authenticated"], told["audiences"]) == (True, ["others"])


@asking
async def test_a_jwt_with_an_extra_equals_sign_is_refused(api: Api) -> None:
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    text = (await token(api)).body["status"]["token"]
    for changed in (f"{text}=", f"{text}==", text.replace(".", "=.", 1), text.replace(".", "=.", 2)):
        assert await why(api, changed) == "invalid bearer token"
        me = await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, authorization=f"Bearer {changed}")
        assert me.code == 401


@asking
async def test_a_token_ends_with_its_time(api: Api) -> None:
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    text = (await token(api, expirationSeconds=600)).body["status"]["token"]
    await api.server.world.clock.sleep(659)  # clocks may differ by a minute, as kube-apiserver allows
    assert await known(api, text)
    await api.server.world.clock.sleep(2)
    assert await why(api, text) == "[invalid bearer token, service account token has expired]"


@asking
async def test_a_token_is_invalid_after_its_bound_object_is_deleted(api: Api) -> None:
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert (await api.post(PODS, POD)).code == 201
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    text = (await token(api, boundObjectRef=bound)).body["status"]["token"]
    assert await known(api, text)
    await api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert await why(api, text) == "[invalid bearer token, service account token has been invalidated]"
    free = (await token(api)).body["status"]["token"]
    await api.delete(f"{ACCOUNTS}/robot")
    assert await why(api, free) == '[invalid bearer token, serviceaccounts "robot" not found]'
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert "does not match claim" in await why(api, free)


@pytest.mark.parametrize(
    ("spec", "code", "why"),
    [
        ({"expirationSeconds": 60}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 1 << 33}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "no"}}, 404, 'pods "no" not found'),
        ({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1"}}, 400, "cannot bind token to object of type"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(spec: dict[str, object], code: int, why: str) -> None:
    async def play(api: Api) -> None:
        await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        answer = await token(api, **spec)
        assert (answer.code, why in answer.message) == (code, True), answer.message

    asking(play)()
