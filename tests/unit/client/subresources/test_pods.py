"""What can be done with a running Pod; scale; tokens of service accounts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import WIDGETS, Json, Widget
from tests.stage.transport import Answer, ScriptedTransport, Streamed, in_turn, scripted

from ostinato.api.errors import APIError, BadRequest, Conflict, InternalError, NotFound, TooManyRequests
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, ConnectionLost, MergePatch, PortForwardError, Unstructured
from ostinato.client.transport.protocol import UpgradeRefused
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Node, Pod, ServiceAccount
from ostinato.world import Simulation

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "image": "a"}]},
}


async def _pod(stage: Stage, **spec: Any) -> None:
    await stage.client.create(ServiceAccount(metadata=ObjectMeta(name="default")))
    await stage.client.create({**POD, "spec": {**POD["spec"], **spec}})


# Logs


def test_a_log_is_text_and_its_options_are_sent() -> None:
    world = Simulation(1)
    client, transport = scripted(world, in_turn(Answer(200, b"one\ntw\xff\n", {"content-type": "text/plain"})))
    since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    log = world.run(
        client.pods.log("web", container="a", previous=True, tail_lines=3, since_time=since, timestamps=False)
    )
    assert log == "one\ntw\ufffd\n"
    request = transport.requests[0]
    assert request.path == "/api/v1/namespaces/default/pods/web/log"
    assert dict(request.query) == {
        "container": "a",
        "previous": "true",
        "tailLines": "3",
        "sinceTime": "2026-01-02T03:04:05Z",
        "timestamps": "false",
    }


def test_a_log_is_followed_line_by_line_however_it_is_cut() -> None:
    world = Simulation(1)
    stream = Streamed(b"one\ntw", b"o\nthree")
    client, transport = scripted(world, in_turn(stream))

    async def main() -> list[str]:
        return [line async for line in client.pods.follow(NamespacedName("x", "web"), since_seconds=5, limit_bytes=9)]

    assert world.run(main()) == ["one", "two", "three"]
    assert stream.closed
    assert transport.requests[0].stream
    assert dict(transport.requests[0].query) == {"sinceSeconds": "5", "limitBytes": "9", "follow": "true"}


def test_unknown_options_of_logs_are_rejected() -> None:
    world = Simulation(1)
    client, _ = scripted(world, in_turn(Answer()))
    with pytest.raises(TypeError, match="unknown option 'tail'; use one of container"):
        world.run(client.pods.log("web", tail=3))  # type: ignore[call-arg]


@staged
async def test_a_pod_that_does_not_run_has_an_empty_log(stage: Stage) -> None:
    await _pod(stage)
    assert await stage.client.pods.log("web") == ""
    with pytest.raises(NotFound, match='pods "nope" not found'):
        await stage.client.pods.log("nope")
    with pytest.raises(BadRequest, match="container nope is not valid for pod web"):
        await stage.client.pods.log("web", container="nope")


# Exec


class Socket:
    """A WebSocket whose other end a test plays."""

    def __init__(self, *messages: bytes, protocol: str = "v5.channel.k8s.io") -> None:
        self.protocol = protocol
        self.sent: list[bytes] = []
        self.closed = False
        self._messages = list(messages)

    async def send(self, message: bytes) -> None:
        self.sent.append(message)

    async def receive(self) -> bytes | None:
        await asyncio.sleep(0)  # lets others run, as a network does
        return self._messages.pop(0) if self._messages else None

    async def close(self) -> None:
        self.closed = True


def _ended(code: int) -> bytes:
    if not code:
        return b"\x03" + msgspec.json.encode(
            {"metadata": {}, "status": "Success", "kind": "Status", "apiVersion": "v1"}
        )
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
    return b"\x03" + msgspec.json.encode(status)


def _client(world: Simulation, socket: Socket | Exception) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(in_turn(Answer()), socket)  # type: ignore[arg-type]
    return Client(transport, world=world, namespace="default"), transport


@pytest.mark.parametrize("code", [0, 3])
def test_a_node_status_without_a_kind_is_accepted(code: int) -> None:
    world = Simulation(1)
    status = {name: value for name, value in msgspec.json.decode(_ended(code)[1:]).items() if name != "kind"}
    client, _ = _client(world, Socket(b"\x03" + msgspec.json.encode(status)))
    assert world.run(client.pods.run("web", ["true"])).exit_code == code


@pytest.mark.parametrize("code", [0, 3, 255])
def test_a_command_is_run_to_its_end(code: int) -> None:
    world = Simulation(1)
    socket = Socket(b"\x03", b"\x01", b"\x01out", b"\x02err", b"\x01 more", b"\x09odd", b"", _ended(code))
    client, transport = _client(world, socket)
    done = world.run(client.pods.run("web", ["sh", "-c", "exit"], container="a"))
    assert done == (code, b"out more", b"err")
    assert socket.closed
    assert transport.requests[0].query == [
        ("command", "sh"),
        ("command", "-c"),
        ("command", "exit"),
        ("container", "a"),
        ("stdout", "true"),
        ("stderr", "true"),
    ]
    assert transport.protocols == ("v5.channel.k8s.io", "v4.channel.k8s.io")


def test_input_is_written_and_ended() -> None:
    world = Simulation(1)
    for given, sent in ((b"hello", [b"\x00hello", b"\xff\x00"]), (b"", [b"\xff\x00"])):
        socket = Socket(*[b"\x01"] * 9, _ended(0))
        client, transport = _client(world, socket)
        world.run(client.pods.run("web", ["cat"], stdin=given))
        assert socket.sent == sent
        assert ("stdin", "true") in transport.requests[0].query


class Cat(Socket):
    """A command that writes what it reads, and reads no more before that has been taken."""

    def __init__(self) -> None:
        super().__init__()
        self._pipe: asyncio.Queue[bytes] = asyncio.Queue(1)

    async def send(self, message: bytes) -> None:
        self.sent.append(message)
        ended = message == b"\xff\x00"
        await self._pipe.put(_ended(0) if ended else b"\x01" + message[1:])

    async def receive(self) -> bytes | None:
        return await self._pipe.get()


def test_input_and_output_do_not_wait_for_each_other() -> None:
    world = Simulation(1)
    client, _ = _client(world, Cat())
    assert len(world.run(client.pods.run("web", ["cat"], stdin=b"x" * 1_000_000)).stdout) == 1_000_000


class Closed(Socket):
    """A command that ends without reading its input."""

    async def send(self, message: bytes) -> None:
        raise ConnectionLost("closed")


def test_a_command_may_end_without_reading_its_input() -> None:
    world = Simulation(1)
    client, _ = _client(world, Closed(b"\x01out", _ended(4)))
    assert world.run(client.pods.run("web", ["false"], stdin=b"x")) == (4, b"out", b"")


def test_long_input_is_written_in_pieces() -> None:
    world = Simulation(1)
    socket = Socket(*[b"\x01"] * 9, _ended(0))
    client, _ = _client(world, socket)
    world.run(client.pods.run("web", ["cat"], stdin=b"x" * 70_000))
    assert [len(message) - 1 for message in socket.sent] == [32_768, 32_768, 4_464, 1]


def test_an_older_server_does_not_support_closing_stdin() -> None:
    world = Simulation(1)
    socket = Socket(_ended(0), protocol="v4.channel.k8s.io")
    client, _ = _client(world, socket)
    with pytest.raises(
        NotImplementedError, match=r"exec in Pod default/web: v4\.channel\.k8s\.io of the server cannot close stdin"
    ):
        world.run(client.pods.run("web", ["cat"], stdin=b"x"))
    assert socket.closed


def test_a_terminal_has_one_stream_and_a_size() -> None:
    world = Simulation(1)
    socket = Socket(b"\x01$ ", _ended(0))
    client, transport = _client(world, socket)

    async def main() -> None:
        async with await client.pods.attach("web", stdin=True, tty=True) as process:
            await process.resize(80, 25)
            output = [each async for each in process]
            assert output == [("stdout", b"$ ")]
            assert process.exit_code == 0

    world.run(main())
    assert socket.sent == [b'\x04{"Width":80,"Height":25}']
    query = dict(transport.requests[0].query)
    assert (query["stderr"], query["tty"], query["stdin"]) == ("false", "true", "true")
    assert transport.requests[0].path.endswith("/attach")


def test_a_command_that_cannot_be_run_raises_the_error_of_the_server() -> None:
    world = Simulation(1)
    failure = b"\x03" + msgspec.json.encode(InternalError.of("no such file: nope").to_dict())
    client, _ = _client(world, Socket(failure))
    with pytest.raises(InternalError, match="no such file: nope"):
        world.run(client.pods.run("web", ["nope"]))


def test_a_status_without_an_exit_code_is_an_error() -> None:
    world = Simulation(1)
    odd = msgspec.json.decode(_ended(3)[1:])
    odd["details"] = {"causes": [{"reason": "Other", "message": "x"}]}
    client, _ = _client(world, Socket(b"\x03" + msgspec.json.encode(odd)))
    with pytest.raises(InternalError, match="no exit code in the Status of the command"):
        world.run(client.pods.run("web", ["x"]))


def test_a_connection_lost_before_the_end_of_the_command_is_an_error() -> None:
    world = Simulation(1)
    client, _ = _client(world, Socket(b"\x01out"))
    with pytest.raises(ConnectionLost, match="exec in Pod default/web: the connection ended before the command did"):
        world.run(client.pods.run("web", ["x"]))


@pytest.mark.parametrize("command", ["ls -l", [], ""])
def test_a_command_is_a_list_of_words(command: Any) -> None:
    world = Simulation(1)
    client, _ = _client(world, Socket())
    with pytest.raises(ValueError, match="pass a list of words"):
        world.run(client.pods.exec("web", command))


def test_a_rejected_upgrade_raises_the_error_of_the_server() -> None:
    world = Simulation(1)
    body = msgspec.json.encode(BadRequest.of("pod web does not have a host assigned").to_dict())
    client, _ = _client(world, UpgradeRefused("answered 400", 400, {}, body))
    with pytest.raises(BadRequest, match="pod web does not have a host assigned"):
        world.run(client.pods.run("web", ["x"]))


@staged
async def test_the_server_reports_why_a_connection_was_not_opened(stage: Stage) -> None:
    await _pod(stage)
    with pytest.raises(BadRequest, match="pod web does not have a host assigned"):
        await stage.client.pods.run("web", ["x"])
    with pytest.raises(APIError, match="does not have a host assigned"):
        await stage.client.pods.port_forward("web", 80)


# Port-forward


def test_a_port_is_forwarded_both_ways() -> None:
    world = Simulation(1)
    port = (8080).to_bytes(2, "little")
    socket = Socket(b"\x00" + port, b"\x01" + port, b"\x00hello", b"\x01", b"\x00", b"\x00 you", protocol="v4")
    client, transport = _client(world, socket)

    async def main() -> None:
        async with await client.pods.port_forward("web", 8080) as connection:
            await connection.write(b"hi")
            assert [await connection.read(), await connection.read(), await connection.read()] == [
                b"hello",
                b" you",
                b"",
            ]

    world.run(main())
    assert socket.sent == [b"\x00hi"]
    assert socket.closed
    assert transport.requests[0].query == [("ports", "8080")]
    assert transport.protocols == ("v4.channel.k8s.io",)


def test_a_closed_port_raises_the_error_of_the_node() -> None:
    world = Simulation(1)
    port = (80).to_bytes(2, "little")
    client, _ = _client(world, Socket(b"\x00" + port, b"\x01" + port, b"\x01connection refused"))

    async def main() -> None:
        connection = await client.pods.port_forward("web", 80)
        with pytest.raises(PortForwardError, match="port 80 of Pod default/web: connection refused"):
            await connection.read()

    world.run(main())


@pytest.mark.parametrize("first", [b"\x00\x51\x00", b"\x02\x50\x00", b"\x00", b""])
def test_a_server_that_begins_otherwise_speaks_another_protocol(first: bytes) -> None:
    world = Simulation(1)
    client, _ = _client(world, Socket(first))

    async def main() -> None:
        connection = await client.pods.port_forward("web", 80)
        with pytest.raises(ConnectionLost, match="the first message does not repeat the port"):
            await connection.read()

    world.run(main())


# Eviction, binding


@staged
async def test_a_pod_is_bound_to_a_node_and_evicted(stage: Stage) -> None:
    await stage.client.create(Node(metadata=ObjectMeta(name="n")))
    await _pod(stage)
    with pytest.raises(Conflict):
        await stage.client.pods.bind("web", "n", uid="another")
    await stage.client.pods.bind("web", "n")
    assert (await stage.client.get(Pod, "web")).spec.node_name == "n"
    await stage.client.pods.evict("web", dry_run=True)
    with pytest.raises(Conflict):
        await stage.client.pods.evict("web", uid="another")
    await stage.client.pods.evict("web", grace_period=5)
    assert (await stage.client.get(Pod, "web")).metadata.deletion_grace_period_seconds == 5


@staged
async def test_an_eviction_that_a_budget_forbids_raises(stage: Stage) -> None:
    await _pod(stage, nodeName="n")
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    made = await stage.client.create({**budget, "spec": spec})
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    await stage.client.update({**made, "status": status}, subresource="status")
    ready = MergePatch({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    await stage.client.patch(Pod, "web", ready, subresource="status")
    with pytest.raises(TooManyRequests, match="Cannot evict pod as it would violate the pod's disruption budget"):
        await stage.client.pods.evict("web")


# Scale, tokens


@staged
async def test_workloads_of_any_kind_are_scaled(stage: Stage) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    await stage.client.create(made)
    await stage.client.create(WIDGETS)
    await stage.client.create(Widget(metadata=ObjectMeta(name="web")))
    for kind in (Deployment, Unstructured.of("example.dev/v1", "Widget")):
        scale = await stage.client.scale.set(kind, "web", 3)
        assert scale.spec.replicas == 3
        again = await stage.client.scale.get(kind, "web")
        assert again.spec.replicas == 3
        with pytest.raises(Conflict):
            await stage.client.scale.set(kind, "web", 4, resource_version="1")
    assert (await stage.client.get(Deployment, "web")).spec.replicas == 3


def test_a_service_account_token_is_requested() -> None:
    world = Simulation(1)
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "spec": {"audiences": ["a"], "expirationSeconds": 600},
        "status": {"token": "secret", "expirationTimestamp": "2026-01-01T00:10:00Z"},
    }
    client, transport = scripted(world, in_turn(Answer(201, answer)))
    token = world.run(client.service_accounts.token("builder", audiences=["a"], expiration=600))
    assert token.status.token == "secret"
    request = transport.requests[0]
    assert request.path == "/api/v1/namespaces/default/serviceaccounts/builder/token"
    assert isinstance(request.body, bytes)
    assert msgspec.json.decode(request.body)["spec"] == {"audiences": ["a"], "expirationSeconds": 600}
