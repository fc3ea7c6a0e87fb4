"""The chain of authorizers: who is asked, in which order, and what is made of their answers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from tests.stage.server import started_server

from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.server.access.authorization.configuration import (
    AuthorizationWebhookSettings,
    ConfigurationError,
    Configured,
    load,
    read,
)
from ostinato.server.access.authorization.modes import AuthorizationSettings
from ostinato.server.access.authorization.webhook import WebhookAuthorizer
from ostinato.server.request import Request as ServerRequest
from ostinato.server.request import Response, User
from ostinato.world import Simulation

MAPS = "/api/v1/namespaces/default/configmaps"


class Answer:
    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.warnings = ()
        self._body = body

    async def read(self) -> bytes:
        return self._body

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Remote:
    """A server of reviews: answers with what it is told, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers]
        self.asked: list[dict[str, Any]] = []

    async def request(self, request: Request) -> Any:
        assert isinstance(request.body, bytes)
        self.asked.append(msgspec.json.decode(request.body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            return Answer(answer, b"")
        return Answer(201, msgspec.json.encode({"status": answer}))

    async def websocket(self, *_: Any) -> Any: ...

    async def close(self) -> None: ...


def playing(remote: Remote, then: Any, *types: str, **webhook: Any) -> None:
    """A server with these authorizers, of which the webhook is played."""
    simulation = Simulation(seed=1)
    settings = AuthorizationWebhookSettings(kubeconfig=None, **webhook)
    chain = tuple(Configured(each, each.lower()) for each in types if each != "Webhook")

    async def main() -> None:
        async with started_server(simulation, authorization=AuthorizationSettings(chain=chain)) as server:
            played = WebhookAuthorizer(simulation, Configured("Webhook", "played", settings), remote)
            server.authorizer.modes = [
                played if each == "Webhook" else server.authorizer.modes[chain.index(Configured(each, each.lower()))]
                for each in types
            ]
            server.authenticator.add("jane", User("jane", "u", ("dev",), {"scopes": ("a",)}))
            server.authenticator.add("admin", User("admin", groups=("system:masters",)))

            async def ask(path: str, who: str = "jane", method: str = "GET", body: Any = None) -> tuple[int, str]:
                path, _, query = path.partition("?")
                headers = {"authorization": f"Bearer {who}", "content-type": "application/json"}
                sent = b"" if body is None else msgspec.json.encode(body)
                answer = await server.handle(ServerRequest(method, path, query, headers, body=sent))
                assert isinstance(answer, Response)
                return answer.status, answer.body.decode()

            await then(ask, simulation)

    simulation.run(main())


def test_a_webhook_receives_all_request_attributes() -> None:
    remote = Remote({"allowed": True})

    async def then(ask: Any, _: Any) -> None:
        assert (await ask(f"{MAPS}?fieldSelector=metadata.name%3Da&labelSelector=x+in+(y,z),!w"))[0] == 200
        assert (await ask("/metrics"))[0] == 200

    playing(remote, then, "Webhook", version="v1")
    first, second = remote.asked
    assert first["apiVersion"] == "authorization.k8s.io/v1"
    assert first["spec"] == {
        "resourceAttributes": {
            "namespace": "default",
            "verb": "list",
            "version": "v1",
            "resource": "configmaps",
            "name": "a",
            "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
            "labelSelector": {
                "requirements": [
                    {"key": "w", "operator": "DoesNotExist"},
                    {"key": "x", "operator": "In", "values": ["y", "z"]},
                ]
            },
        },
        "user": "jane",
        "groups": ["dev", "system:authenticated"],
        "extra": {"scopes": ["a"]},
        "uid": "u",
    }
    assert second["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


def test_decisions_are_kept_those_that_allow_for_longer() -> None:
    remote = Remote({"allowed": True}, {"allowed": False}, {"allowed": True})

    async def then(ask: Any, world: Simulation) -> None:
        assert [(await ask(MAPS))[0] for _ in range(3)] == [200, 200, 200]
        assert len(remote.asked) == 1
        await world.clock.sleep(301)
        assert [(await ask(MAPS))[0] for _ in range(3)] == [403, 403, 403]
        assert len(remote.asked) == 2
        await world.clock.sleep(31)
        assert (await ask(MAPS))[0] == 200

    playing(remote, then, "Webhook")


def test_a_denial_ends_the_chain_and_no_opinion_does_not() -> None:
    remote = Remote({"denied": True, "reason": "on holiday"}, {"allowed": False, "reason": "who knows"})

    async def then(ask: Any, world: Simulation) -> None:
        code, body = await ask(MAPS)
        assert (code, "on holiday" in body) == (403, True)
        await world.clock.sleep(31)
        assert (await ask(MAPS))[0] == 200

    playing(remote, then, "Webhook", "AlwaysAllow")


def test_system_masters_bypass_the_authorization_webhook() -> None:
    remote = Remote({"denied": True})

    async def then(ask: Any, _: Any) -> None:
        assert (await ask(MAPS, who="admin"))[0] == 200

    playing(remote, then, "Webhook", "AlwaysDeny")
    assert not remote.asked


@pytest.mark.parametrize(
    ("denies", "modes", "code"),
    [
        (False, ("Webhook", "AlwaysAllow"), 200),
        (True, ("Webhook", "AlwaysAllow"), 500),
        (False, ("Webhook", "RBAC"), 500),
    ],
)
def test_a_webhook_that_fails_is_skipped_or_refuses(
    denies: bool, modes: tuple[str, ...], code: int, caplog: pytest.LogCaptureFixture
) -> None:
    remote = Remote(ConnectionLost("connection refused"))

    async def then(ask: Any, _: Any) -> None:
        told, body = await ask(MAPS)
        assert told == code
        if code == 500:
            assert body == f'Internal Server Error: "{MAPS}": connection refused\n'

    with caplog.at_level(logging.CRITICAL, "ostinato"):
        playing(remote, then, *modes, denies_on_failure=denies)


def test_a_busy_webhook_is_retried() -> None:
    remote = Remote(503, 500, {"allowed": True})

    async def then(ask: Any, _: Any) -> None:
        assert (await ask(MAPS))[0] == 200

    playing(remote, then, "Webhook")
    assert len(remote.asked) == 3


def test_a_redirect_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    remote = Remote(302)

    async def then(ask: Any, _: Any) -> None:
        assert (await ask(MAPS))[0] == 500

    with caplog.at_level(logging.CRITICAL, "ostinato"):
        playing(remote, then, "Webhook")
    assert len(remote.asked) == 1


def test_a_webhook_is_called_only_if_its_match_conditions_are_true() -> None:
    remote = Remote({"allowed": True})
    conditions = ("has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'default'")

    async def then(ask: Any, _: Any) -> None:
        assert (await ask(MAPS))[0] == 200
        assert (await ask("/api/v1/namespaces/other/configmaps"))[0] == 403
        assert (await ask("/metrics"))[0] == 403

    playing(remote, then, "Webhook", conditions=conditions)
    assert len(remote.asked) == 1


def test_expressions_of_policies_wait_for_a_webhook() -> None:
    remote = Remote({"allowed": True})

    async def then(ask: Any, _: Any) -> None:
        group = "/apis/admissionregistration.k8s.io/v1"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        expression = "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"
        policy = {
            "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"!{expression}", "message": "too mighty"}],
            },
        }
        path = f"{group}/validatingadmissionpolicies"
        assert (await ask(path, "admin", "POST", policy))[0] == 201
        spec = {"policyName": "p", "validationActions": ["Deny"]}
        binding = {"metadata": {"name": "b"}, "spec": spec}
        assert (await ask(f"{path.removesuffix('ies')}ybindings", "admin", "POST", binding))[0] == 201
        code, body = await ask(MAPS, "jane", "POST", {"metadata": {"name": "m"}})
        assert (code, "too mighty" in body) == (422, True), body

    playing(remote, then, "Webhook")
    assert [each["spec"]["resourceAttributes"]["resource"] for each in remote.asked] == ["configmaps", "secrets"]


HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
GOOD = {
    "timeout": "3s",
    "subjectAccessReviewVersion": "v1",
    "matchConditionSubjectAccessReviewVersion": "v1",
    "failurePolicy": "Deny",
    "connectionInfo": {"type": "InClusterConfig"},
}


def configuration(**webhook: Any) -> bytes:
    authorizer = {"type": "Webhook", "name": "w", "webhook": GOOD | webhook}
    return HEAD.encode() + b"authorizers: [" + msgspec.json.encode(authorizer) + b"]\n"


def test_a_configuration_is_read() -> None:
    data = configuration(
        authorizedTTL="1m", cacheUnauthorizedRequests=False, matchConditions=[{"expression": "request.user == 'x'"}]
    )
    assert read(data) == (
        Configured(
            "Webhook",
            "w",
            AuthorizationWebhookSettings(
                kubeconfig=None,
                timeout=3.0,
                authorized_ttl=60.0,
                unauthorized_ttl=0.0,
                version="v1",
                denies_on_failure=True,
                conditions=("request.user == 'x'",),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HEAD.encode(), "authorizers: Required value: at least one authorization mode must be defined"),
        (b"kind: Pod\napiVersion: v1\n", 'no kind "Pod" is registered for version "v1"'),
        (f"{HEAD}x: 1\n".encode(), 'strict decoding error: unknown field "x"'),
        (
            f"{HEAD}authorizers: [{{type: RBAC, name: x}}]".encode(),
            "expected name rbac for authorizer RBAC instead of x",
        ),
        (
            f"{HEAD}authorizers: [{{type: RBAC, name: rbac}}, {{type: RBAC, name: rbac}}]".encode(),
            'authorizers[1].type: Duplicate value: "RBAC"',
        ),
        (f"{HEAD}authorizers: [{{type: Web, name: x}}]".encode(), 'authorizers[0].type: Unsupported value: "Web"'),
        (configuration(timeout="31s"), 'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        (configuration(failurePolicy="Maybe"), 'authorizers[0].failurePolicy: Unsupported value: "Maybe"'),
        (
            configuration(connectionInfo={"type": "KubeConfigFile", "kubeConfigFile": "x"}),
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "x": must be an absolute path',
        ),
        (
            configuration(matchConditions=[{"expression": "request.nothing"}]),
            "authorizers[0].matchConditions[0].expression: Invalid value",
        ),
        (configuration(matchConditions=[{"expression": "request.user"}]), "must evaluate to bool but got string"),
        (
            configuration(matchConditions=[{"expression": "true"}], matchConditionSubjectAccessReviewVersion=""),
            "matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(data)
    assert message in str(raised.value)


def test_a_server_follows_its_configuration(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "authorization.yaml"
    rbac = "{type: RBAC, name: rbac}"
    allow = "{type: AlwaysAllow, name: alwaysallow}"
    file.write_text(f"{HEAD}authorizers: [{rbac}, {allow}]")
    simulation = Simulation(seed=1)

    async def main() -> None:
        settings = AuthorizationSettings(chain=load(file), file=file)
        async with started_server(simulation, authorization=settings) as server:
            before = [type(each).__name__ for each in server.authorizer.modes]
            assert before == ["Rbac", "AlwaysAllow"]
            file.write_text(f"{HEAD}authorizers: [{allow}, {rbac}]")
            await simulation.clock.sleep(11)
            assert [type(each).__name__ for each in server.authorizer.modes] == ["AlwaysAllow", "Rbac"]
            for wrong in (
                f"{HEAD}authorizers: [{allow}]",
                "nonsense",
                f"{HEAD}authorizers: [{rbac}, {allow}, {{type: Node, name: node}}]",
            ):
                file.write_text(wrong)
                await simulation.clock.sleep(11)
                assert [type(each).__name__ for each in server.authorizer.modes] == ["AlwaysAllow", "Rbac"]

    with caplog.at_level(logging.CRITICAL, "ostinato"):
        simulation.run(main())
