"""Image references and pull policies."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.grpc import RpcError
from ostinato.kinds.core_v1 import Container, Pod, PodSpec
from ostinato.plane.node.images.reference import with_tag
from ostinato.plane.node.runtimes import PullError
from ostinato.plane.node.runtimes.containerd.cri import Message
from ostinato.plane.node.runtimes.containerd.images import ImageManager
from ostinato.world import Simulation


@pytest.mark.parametrize(
    ("image", "meant"),
    [
        ("busybox", "busybox:latest"),
        ("busybox:1", "busybox:1"),
        ("a/b/c", "a/b/c:latest"),
        ("registry.example:5000/a/b", "registry.example:5000/a/b:latest"),
        ("[::1]:5000/a:b", "[::1]:5000/a:b"),
        ("localhost/a__b-c.d:X_y.z", "localhost/a__b-c.d:X_y.z"),
        (f"a@sha256:{'0' * 64}", f"a@sha256:{'0' * 64}"),
        (f"a:b@sha256:{'0' * 64}", f"a:b@sha256:{'0' * 64}"),
        ("UPPER/a", "UPPER/a:latest"),
    ],
)
def test_a_name_without_tag_or_digest_gets_the_latest(image: str, meant: str) -> None:
    assert with_tag(image) == meant


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("UPPER", "invalid reference format: repository name (library/UPPER) must be lowercase"),
        ("none.example/UPPER:1", "invalid reference format: repository name (UPPER) must be lowercase"),
        ("", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("a:", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("a:b\n", "invalid reference format"),
        ("../a", "invalid reference format"),
        ("a@sha256:0", "invalid reference format"),
        ("a/" + "b" * 300, "repository name must not be more than 255 characters"),
        ("a" * 5000, "invalid reference format"),
        ("0" * 64, f"invalid repository name ({'0' * 64}), cannot specify 64-byte hexadecimal strings"),
    ],
)
def test_invalid_image_names_have_the_error_texts_of_kubelet(image: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"^(invalid|repository)") as caught:
        with_tag(image)
    assert str(caught.value) == why


class Registry:
    """A CRI with images: those that are there, and those that can be pulled."""

    def __init__(self, there: set[str], pullable: set[str]) -> None:
        self.there = there
        self.pullable = pullable
        self.pulls: list[str] = []

    async def call(self, method: str, request: Message, within: float = 0) -> dict[str, Any]:
        image = request["image"]["image"]
        if method == "PullImage":
            self.pulls.append(image)
            if image not in self.pullable:
                raise RpcError(5, "no registry")
            self.there.add(image)
            return {"image_ref": "sha256:1"}
        return {"image": {"id": "sha256:1", "size": 7}} if image in self.there else {}

    def stream(self, method: str, request: Message) -> AsyncGenerator[dict[str, Any], None]:
        raise AssertionError(method)


class Scene:
    def __init__(self, *, there: set[str] | None = None, pullable: set[str] | None = None) -> None:
        self.world = Simulation(1)
        self.registry = Registry(there or set(), pullable or set())
        self.images = ImageManager(self.registry, self.world.clock)
        self.events: list[tuple[str, str, str]] = []

    def ensure(self, image: str, policy: str | None = None, after: float = 0) -> tuple[str, str]:
        """What a container with the image waits for; ("", "") if for nothing."""
        container = Container(name="c", image=image, image_pull_policy=policy)
        pod = Pod(metadata=ObjectMeta(name="p", namespace="n", uid="u"), spec=PodSpec(containers=[container]))
        self.events.clear()

        async def play() -> tuple[str, str]:
            await self.world.clock.sleep(after)
            try:
                await self.images.ensure(pod, image, policy or "", lambda *event: self.events.append(event))
            except PullError as error:
                return error.reason, str(error)
            return "", ""

        return self.world.run(play())


def test_a_present_image_is_not_pulled() -> None:
    scene = Scene(there={"a:1"})
    assert scene.ensure("a:1", "IfNotPresent") == ("", "")
    message = 'Container image "a:1" already present on machine and can be accessed by the pod'
    assert scene.events == [("Normal", "Pulled", message)]
    assert scene.registry.pulls == []


def test_a_missing_image_with_policy_never_is_an_error() -> None:
    scene = Scene(pullable={"a:1"})
    message = 'Container image "a:1" is not present with pull policy of Never'
    assert scene.ensure("a:1", "Never") == ("ErrImageNeverPull", message)
    assert scene.events == [("Warning", "ErrImageNeverPull", message)]
    assert scene.registry.pulls == []


@pytest.mark.parametrize(("policy", "there"), [("IfNotPresent", set()), ("Always", {"a:latest"})])
def test_an_image_is_pulled_if_missing_or_always(policy: str, there: set[str]) -> None:
    scene = Scene(there=there, pullable={"a:latest"})
    assert scene.ensure("a", policy) == ("", "")
    assert scene.registry.pulls == ["a:latest"]
    assert [event[:2] for event in scene.events] == [("Normal", "Pulling"), ("Normal", "Pulled")]
    assert scene.events[1][2] == 'Successfully pulled image "a" in 0ms (0ms including waiting). Image size: 7 bytes.'


def test_failed_pulls_back_off() -> None:
    scene = Scene()
    why = "rpc error: code = NotFound desc = no registry"
    assert scene.ensure("a:1") == ("ErrImagePull", why)
    failed = ("Warning", "Failed", f'Failed to pull image "a:1": {why}')
    assert scene.events == [("Normal", "Pulling", 'Pulling image "a:1"'), failed]
    waits = ("ImagePullBackOff", f'Back-off pulling image "a:1": ErrImagePull: {why}')
    assert scene.ensure("a:1", after=9) == waits
    assert scene.events == [("Normal", "BackOff", 'Back-off pulling image "a:1"')]
    assert scene.ensure("a:1", after=2)[0] == "ErrImagePull"
    assert scene.ensure("a:1", after=19)[0] == "ImagePullBackOff"
    scene.registry.pullable.add("a:1")
    assert scene.ensure("a:1", after=2) == ("", "")
    assert len(scene.registry.pulls) == 3


def test_an_invalid_image_name_is_not_pulled() -> None:
    scene = Scene()
    reason, message = scene.ensure("none.example/UPPER:1")
    assert reason == "InvalidImageName"
    assert scene.events == [("Warning", "InspectFailed", message)]
    assert message.startswith('Failed to apply default image tag "none.example/UPPER:1": couldn\'t parse image name')
