"""Mistakes that beginners make: each gets one message that names the mistake and the fix.

The messages are those of docs/how-to/troubleshoot.md.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import re
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.stage import kinds
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, WidgetSpec, WidgetStatus, config_map, widget
from tests.stage.server import started_server

from ostinato import BlockingContext, Context, Manager, ObjectMeta, Result, controller
from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupResource
from ostinato.cli.app import run
from ostinato.cli.error import CommandError
from ostinato.cli.program.preflight import prepare
from ostinato.controllers import WatchKind, where
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.manager.logs import configure_logging
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "troubleshoot.md").read_text()

# In the file of the operator: reported by `ostinato run FILE` before anything is started

HEADER = """
from typing import Any
from ostinato import BlockingContext, Context, CustomResource, Manager, ObjectMeta, Struct, controller
from ostinato.kinds.core_v1 import ConfigMap


class WidgetSpec(Struct):
    replicas: int = 1


class Widget(CustomResource, group="example.dev", version="v1"):
    spec: WidgetSpec


"""

IN_THE_FILE = {
    "an empty file": ("", "nothing to run; add a @controller, or a manager with runnables"),
    "no kind": (
        "@controller\nasync def widgets(widget: Widget, ctx: Context) -> None: ...",
        "@controller needs a kind; write @controller(Widget) above def widgets",
    ),
    "a kind as text": (
        '@controller("widgets")\nasync def widgets(widget: Widget, ctx: Context) -> None: ...',
        "the text 'widgets' is not a kind; pass a class of ostinato.kinds, a CustomResource class",
    ),
    "a kind without a version": (
        (
            "class Thing(CustomResource, group='example.dev'): ...\n"
            "@controller(Thing)\nasync def things(thing: Thing, ctx: Context) -> None: ..."
        ),
        "class Thing: a kind needs a version; add e.g. version='v1'",
    ),
    "a misspelt keyword of a kind": (
        "class Widget2(CustomResource, group='example.dev', version='v1', plurals='widgets2'): ...",
        "class Widget2: unknown keyword 'plurals'; keywords are group, version, kind, plural",
    ),
    "a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass Thing(CustomResource, group='a.dev', version='v1'): ...",
        "a Struct or CustomResource is not a dataclass; remove @dataclass",
    ),
    "a group without a dot": (
        (
            "class Thing(CustomResource, group='example', version='v1'): ...\n"
            "@controller(Thing)\nasync def things(thing: Thing, ctx: Context) -> None: ..."
        ),
        "class Thing: the group 'example' must be a domain with a dot, e.g. example.dev",
    ),
    "a kind in lower case": (
        (
            "class thing(CustomResource, group='example.dev', version='v1'): ...\n"
            "@controller(thing)\nasync def things(each: thing, ctx: Context) -> None: ..."
        ),
        "kind 'thing': kinds begin with a capital letter; use Thing",
    ),
    "a field that is not JSON": (
        (
            "class Thing(CustomResource, group='example.dev', version='v1'):\n    spec: complex\n"
            "@controller(Thing)\nasync def things(thing: Thing, ctx: Context) -> None: ..."
        ),
        "class Thing, field spec: complex has no portable JSON form: use two fields",
    ),
    "a default of another type": (
        (
            "class ThingSpec(Struct):\n    size: int = 'three'\n"
            "class Thing(CustomResource, group='example.dev', version='v1'):\n    spec: ThingSpec\n"
            "@controller(Thing)\nasync def things(thing: Thing, ctx: Context) -> None: ..."
        ),
        "class ThingSpec, field size: its default is invalid: 'three' is not of type integer; give another",
    ),
    "a mutable default": (
        "class ThingSpec(Struct):\n    tags: list[str] = ['a']\n",
        "non-empty mutable collection (['a']) as a default value is unsafe. Instead configure a `default_factory`",
    ),
    "a misspelt option": (
        "@controller(Widget, ownz=[ConfigMap])\nasync def widgets(widget: Widget, ctx: Context) -> None: ...",
        "@controller: unknown option 'ownz'; did you mean owns? options are",
    ),
    "one kind instead of a list": (
        "@controller(Widget, owns=ConfigMap)\nasync def widgets(widget: Widget, ctx: Context) -> None: ...",
        "owns must be a list; use owns=[ConfigMap]",
    ),
    "a watched kind without a map function": (
        "@controller(Widget, watches=[ConfigMap])\nasync def widgets(widget: Widget, ctx: Context) -> None: ...",
        "watches: ConfigMap is not a WatchKind; use WatchKind(ConfigMap, map_to=…)",
    ),
    "swapped parameters": (
        "@controller(Widget)\nasync def widgets(ctx: Context, widget: Widget) -> None: ...",
        "takes the context first; swap the parameters: async def widgets(widget, ctx)",
    ),
    "the parameters of a kopf handler": (
        "@controller(Widget)\nasync def widgets(spec, name, namespace, **_) -> None: ...",
        "reconciler widgets takes 3 arguments; it must take the object or request, and the context",
    ),
    "another kind in the annotation": (
        "@controller(Widget)\nasync def widgets(widget: ConfigMap, ctx: Context) -> None: ...",
        "takes a ConfigMap, and its controller reconciles Widget; annotate widget as Widget, or write @controller(",
    ),
    "def instead of async def": (
        "@controller(Widget)\ndef widgets(widget: Widget, ctx: Context) -> None: ...",
        "is a plain def, and its context a BlockingContext: annotate it as BlockingContext, or write async def",
    ),
    "async def with a blocking context": (
        "@controller(Widget)\nasync def widgets(widget: Widget, ctx: BlockingContext) -> None: ...",
        "is an async def, and its context a Context: annotate it as Context and await its methods",
    ),
    "two controllers of one name": (
        (
            "@controller(Widget)\nasync def widgets(widget: Widget, ctx: Context) -> None: ...\n"
            "@controller(ConfigMap, name='widgets')\nasync def maps(each: ConfigMap, ctx: Context) -> None: ..."
        ),
        "runnable 'widgets' exists; names must be unique in a manager, set another, e.g. @controller(..., name=",
    ),
    "a function without @controller": (
        "async def widgets(widget: Widget, ctx: Context) -> None: ...\nManager().add(widgets).run()",
        "add() widgets is a function, not a controller; write @controller(Kind) above it",
    ),
    "a path instead of a Config": (
        "Manager('/etc/kubeconfig').run()",
        "the text '/etc/kubeconfig' is not a Config; read a kubeconfig with Config.load(path=...)",
    ),
    "a misspelt field in a module": (
        "Widget(metadata=ObjectMeta(name='a'), spec=WidgetSpec(replica=3))",
        "WidgetSpec has no field 'replica'; did you mean replicas? fields are replicas",
    ),
    "a field without an annotation": (
        "class ThingSpec(Struct):\n    size = 3\nThingSpec(size=4)",
        "size has no annotation in class ThingSpec, so it is not a field",
    ),
}


@contextmanager
def unchanged_logging() -> Iterator[None]:
    """Restore handlers, levels and the display of warnings."""
    root, show = logging.getLogger(), warnings.showwarning
    handlers, level = [*root.handlers], root.level
    levels = {name: logging.getLogger(name).level for name in ("ostinato", "ostinato.plane", "ostinato.server")}
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        warnings.showwarning = show
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, each in levels.items():
            logging.getLogger(name).setLevel(each)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine without a cluster; afterwards modules and logging are as before."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    with unchanged_logging():
        yield
    for name in set(sys.modules) - before:
        if not name.startswith("ostinato"):
            del sys.modules[name]


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("mistake", IN_THE_FILE)
def test_a_mistake_in_the_file_gets_one_message(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = IN_THE_FILE[mistake]
    file = tmp_path / "operator_file.py"
    file.write_text(HEADER + code + "\n")
    command = "manifests" if "class Thing(" in code or "class thing(" in code else "run"  # definitions need no cluster
    assert run([command, str(file)]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") <= (16 if mistake == "a dataclass" else 8), "the user's own lines at most"
    assert "site-packages" not in said
    assert "src/ostinato" not in said


# In a reconcile: logged with the line of the user's code


async def forgets_to_await(each: Widget, ctx: Context) -> None:
    found = ctx.client.get(ConfigMap, "settings")
    print(found.data)  # type: ignore[attr-defined]


async def awaits_a_value(each: Widget, ctx: Context) -> None:
    await ctx.event(each, "Done", "all of it")  # type: ignore[func-returns-value, misc]


async def forgets_async_in_with(each: Widget, ctx: Context) -> None:
    with ctx.finalizer(each, "example.dev/mine"):  # type: ignore[attr-defined]
        pass


async def misspells_a_field(each: Widget, ctx: Context) -> None:
    print(each.spec.replica)  # type: ignore[attr-defined]


async def misspells_an_argument(each: Widget, ctx: Context) -> None:
    WidgetSpec(replica=3)  # type: ignore[call-arg]


async def misspells_an_argument_over_several_lines(each: Widget, ctx: Context) -> None:
    made = Widget(
        metadata=ObjectMeta(name="grün"),
        spec=kinds.WidgetSpec(  # type: ignore[call-arg]
            image="a",
            replica=3,
        ),
    )
    await ctx.apply(made, owner=each)


async def puts_the_name_beside_metadata(each: Widget, ctx: Context) -> None:
    await ctx.apply(ConfigMap(name="a", data={}), owner=each)  # type: ignore[call-arg]


async def leaves_out_a_required_field(each: Widget, ctx: Context) -> None:
    spec = DeploymentSpec(replicas=1)  # type: ignore[call-arg]
    await ctx.apply(Deployment(metadata=ObjectMeta(name="a"), spec=spec), owner=each)


async def gives_metadata_as_a_dict(each: Widget, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata={"name": "a"}), owner=each)  # type: ignore[arg-type]


async def gives_no_name(each: Widget, ctx: Context) -> None:
    await ctx.apply(ConfigMap(data={"a": "b"}), owner=each)


async def sets_an_unknown_status_field(each: Widget, ctx: Context) -> None:
    await ctx.status(redy=3)


async def owns_across_namespaces(each: Widget, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name="a", namespace="other")), owner=each)


async def owns_a_cluster_scoped_object(each: Widget, ctx: Context) -> None:
    await ctx.apply(Namespace(metadata=ObjectMeta(name="a")), owner=each)


async def applies_what_it_has_read(each: Widget, ctx: Context) -> None:
    each.spec.replicas = 4
    await ctx.apply(each)


async def sets_an_invalid_label(each: Widget, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name="a", labels={"app": "my app!"})), owner=each)


async def names_a_finalizer_without_a_domain(each: Widget, ctx: Context) -> None:
    async with ctx.finalizer(each, "cleanup"):
        pass


async def returns_seconds(each: Widget, ctx: Context) -> Any:
    return 30


async def requeues_after_a_text(each: Widget, ctx: Context) -> Any:
    return Result(requeue_after="30s")  # type: ignore[arg-type]


async def writes_its_status_each_time(each: Widget, ctx: Context) -> None:
    await ctx.status(note=f"reconciled by {ctx.reconcile.id}")


async def never_removes_its_finalizer(each: Widget, ctx: Context) -> None:
    if "example.dev/mine" not in each.metadata.finalizers:
        each.metadata.finalizers.append("example.dev/mine")
        await ctx.client.update(each)


async def has_no_permission(each: Widget, ctx: Context) -> None:
    why = 'User "operator" cannot create resource "secrets" in API group "" in the namespace "default"'
    raise Forbidden.of(GroupResource("", "secrets"), "", why)


def awaits_nothing_but_uses_asyncio(each: Widget, ctx: BlockingContext) -> None:
    ctx.list(ConfigMap)  # type: ignore[attr-defined]


IN_A_RECONCILE = {
    forgets_to_await: "a coroutine has no result before it is awaited; write await before the call",
    awaits_a_value: "the call returns no coroutine; remove await",
    forgets_async_in_with: "does not support the context manager protocol; write async with",
    misspells_a_field: "WidgetSpec has no field 'replica'; did you mean replicas? fields are",
    misspells_an_argument: "WidgetSpec has no field 'replica'; did you mean replicas? fields are",
    misspells_an_argument_over_several_lines: "WidgetSpec has no field 'replica'; did you mean replicas? fields are",
    puts_the_name_beside_metadata: "ConfigMap has no field 'name'; write metadata=ObjectMeta(name=…)",
    leaves_out_a_required_field: "Missing required argument 'selector'; DeploymentSpec needs selector=…",
    gives_metadata_as_a_dict: 'metadata: expected ObjectMeta, got dict; write metadata=ObjectMeta(name="...")',
    gives_no_name: "ConfigMap: name is required; set metadata.name, or pass the name",
    sets_an_unknown_status_field: "status has no field 'redy'; fields are",
    owns_across_namespaces: "cross-namespace owner references are disallowed",
    owns_a_cluster_scoped_object: "cluster-scoped resource must not have a namespace-scoped owner",
    applies_what_it_has_read: "apply() of an object that was read from the server would take ownership of all",
    sets_an_invalid_label: 'metadata.labels: Invalid value: "my app!": a valid label must be',
    names_a_finalizer_without_a_domain: "'cleanup' is not a valid finalizer: it must have a domain prefix, such as",
    returns_seconds: "returned 30 (int); return None, or Result(requeue_after=…) to requeue",
    requeues_after_a_text: "requeue_after must be a number of seconds or a timedelta, not '30s'",
    writes_its_status_each_time: "the reconcile is self-triggered",
    never_removes_its_finalizer: "deletion blocked by finalizers",
    has_no_permission: "declare the kind in owns= or watches=, or access=[Access(...)], and apply the roles of",
    awaits_nothing_but_uses_asyncio: "the context of a plain def has no attribute 'list'; did you mean client?",
}


@pytest.fixture(scope="module")
def logs() -> dict[str, list[str]]:
    """Warnings and errors of the controllers with the mistakes above, each with a Widget of its own."""
    found: dict[str, list[str]] = {}

    @staged
    async def play(stage: ControllerStage) -> None:
        async with AsyncExitStack() as stack:
            for function in IN_A_RECONCILE:
                name = name_of(function)
                await stage.user.create(widget(name))
                mine = where(Widget, lambda each, name=name: each.metadata.name == name)
                await stack.enter_async_context(
                    stage.running(controller(Widget, name=name, predicates=[mine])(function))
                )
            await stage.settle(5)
            for function in IN_A_RECONCILE:
                await stage.user.delete(Widget, name_of(function))
            await stage.settle(70)
        for function in IN_A_RECONCILE:
            name = name_of(function)
            found[name] = [text for text in stage.log.texts() if f"controller={name} " in text]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a coroutine is never awaited
        play()
        gc.collect()  # the frames of errors keep it; it would warn in another test
    assert not [each for each in gc.get_objects() if inspect.iscoroutine(each) and "CachedReader" in each.__qualname__]
    return found


def name_of(function: Any) -> str:
    return str(function.__name__).replace("_", "-")


@pytest.mark.parametrize("function", IN_A_RECONCILE, ids=name_of)
def test_a_mistake_in_a_reconcile_is_logged_with_its_fix(function: Any, logs: dict[str, list[str]]) -> None:
    first = logs[name_of(function)][0]
    assert IN_A_RECONCILE[function] in first
    assert f"Widget default/{name_of(function)}" in first, "the object"


def test_a_coroutine_that_is_dropped_is_logged_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def forgotten() -> None: ...

    with unchanged_logging(), warnings.catch_warnings():
        warnings.simplefilter("default")
        configure_logging("text", stream=sys.stderr)
        forgotten()
    said = capsys.readouterr().err
    assert "coroutine was never awaited, so it did nothing; write await before the call coroutine=" in said
    assert re.search(r"line=\S+test_beginner_mistakes.py:\d+", said)


def test_a_status_that_an_update_does_not_write_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        made = await stage.user.create(widget("a"))
        made.status = WidgetStatus(ready=3)
        await stage.user.update(made)
        made = await stage.user.get(Widget, "a")
        made.spec.replicas = 7
        await stage.user.update(made)

    play()
    (text,) = [each.getMessage() for each in caplog.records if each.name == "ostinato.client"]
    assert "update() did not write the status; use ctx.status(...), or update(..., subresource='status')" in text
    assert "Widget default/a" in text


def test_a_map_function_that_fails_is_named() -> None:
    def widgets_using(each: ConfigMap) -> Any:
        return each.metadata.labels["widget"]

    @staged
    async def play(stage: ControllerStage) -> None:
        watches = [WatchKind(ConfigMap, map_to=widgets_using)]

        @controller(Widget, name="bad", watches=watches)
        async def bad(each: Widget, ctx: Context) -> None: ...

        async with stage.running(bad):
            await stage.settle(1)
            await stage.user.create(config_map("a"))
            await stage.settle(1)
        (text,) = stage.log.texts()
        assert "event handler failed; object not enqueued" in text
        assert "KeyError: 'widget'" in text

    play()


def test_a_reconcile_that_blocks_is_told_to_be_a_plain_def() -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        real = stage.world.clock.monotonic
        lost = [0.0]
        stage.world.clock.monotonic = lambda: real() + lost[0]  # type: ignore[method-assign]

        @controller(Widget)
        async def blocks(each: Widget, ctx: Context) -> None:
            lost[0] += 2.0  # as requests.get() would

        await stage.user.create(widget("a"))
        async with stage.running(blocks):
            await stage.settle()
        text = stage.log.texts()[0]
        assert "reconcile blocked the event loop; await long operations, or make the reconciler a plain def" in text

    play()


# On the command line, and of the cluster


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "missing.py: no such file"),
        (["OPERATOR"], "use --embedded to run without a cluster"),
        (
            ["--kubeconfig", "/nonexistent", "OPERATOR"],
            "/nonexistent: does not exist; check the path of the kubeconfig",
        ),
        (
            ["--context", "staging", "--kubeconfig", "KUBECONFIG", "OPERATOR"],
            'context "staging" does not exist; choose',
        ),
        (["--state", "/tmp/x", "OPERATOR"], "--state needs --embedded"),
        (["--health", "8081", "OPERATOR"], "--health"),
    ],
)
def test_a_mistake_on_the_command_line_gets_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operator, kubeconfig = tmp_path / "operator_file.py", tmp_path / "config"
    operator.write_text(HEADER + "@controller(Widget)\nasync def widgets(widget: Widget, ctx: Context) -> None: ...\n")
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}]}"
    )
    names = {"OPERATOR": str(operator), "KUBECONFIG": str(kubeconfig)}
    assert run(["run", *(names.get(each, each) for each in arguments)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.usefixtures("nowhere")
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "operator_file.py"
    file.write_text(HEADER + "@controller(Widget)\nasync def widgets(widget: Widget, ctx: Context) -> None: ...\n")
    monkeypatch.setitem(sys.modules, "ostinato.cli.program.embedded", None)
    assert run(["run", "--embedded", str(file)]) == 1
    assert "--embedded needs the server; run pip install 'ostinato[server]'" in capsys.readouterr().err


@controller(Widget, name="widgets")
async def well(each: Widget, ctx: Context) -> None: ...


def test_a_kind_that_is_not_installed_is_named_with_the_command() -> None:
    world = Simulation(seed=1)

    async def main() -> None:
        async with started_server(world) as server:
            manager = Manager(connect=lambda purpose: InProcessTransport(server), world=world).add(well)
            with pytest.raises(CommandError) as raised:
                await prepare(manager, "widget.py", [])
            assert str(raised.value) == (
                "controller widgets: the server does not serve example.dev/v1 Widget; "
                "use --install-crds to install its definition"
            )

    world.run(main())


def test_a_missing_role_is_named_with_the_command_that_writes_it() -> None:
    world = Simulation(seed=1)

    @controller(ConfigMap, name="maps")
    async def maps(each: ConfigMap, ctx: Context) -> None: ...

    async def main() -> None:
        async with started_server(world) as server:
            manager = Manager(connect=lambda purpose: InProcessTransport(server, user=("jane", ())), world=world)
            with pytest.raises(CommandError) as raised:
                await prepare(manager.add(maps), "maps.py", [])
            assert "controller maps may not list v1 ConfigMap" in str(raised.value)
            assert "`ostinato manifests maps.py` writes the role that it needs" in str(raised.value)

    world.run(main())


def test_a_port_that_is_in_use_is_named() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            async with started_server() as server:
                manager = Manager(connect=lambda purpose: InProcessTransport(server), health=address)
                with pytest.raises(
                    OSError, match=r"cannot serve health: .*in use; choose another address with health="
                ):
                    await manager.add(well).serve()

    asyncio.run(main())


def test_the_page_has_every_message() -> None:
    texts = [message for _, message in IN_THE_FILE.values()] + [*IN_A_RECONCILE.values()]
    assert [text for text in texts if text not in PAGE] == []
