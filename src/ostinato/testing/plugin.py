"""pytest plugin: fixtures for tests of controllers, and the event loop for `async def` tests that use them.

| fixture | is |
|---|---|
| `cluster` | an API server in this process (`Cluster`), or a namespace of a real cluster with `--cluster=KUBECONFIG` |
| `plane` | the same with controllers, scheduler and simulated nodes: Pods run |
| `client` | a client of an administrator |
| `manager` | runs controllers with the permissions that `ostinato manifests` derives (`ClusterManager`) |
| `clock` | virtual time (`VirtualClock`); the test runs in a simulation |
| `events` | the Events that were recorded |
| `eventually` | waits for a condition |
| `explore` | runs an operator through every fault that a cluster can deal it (`ostinato.testing.explore`) |

- Tests that pytest-asyncio or anyio run keep their event loop.
- Without one of these fixtures a test is not affected. Nothing else of Ostinato is imported before a test uses one.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial, wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ostinato.client.client import Client
    from ostinato.testing.clock import VirtualClock
    from ostinato.testing.cluster import Cluster
    from ostinato.testing.events import Events
    from ostinato.testing.eventually import Eventually
    from ostinato.testing.explore import Explored
    from ostinato.testing.loops import TestLoop
    from ostinato.testing.manager import ClusterManager

_FIXTURES = frozenset({"cluster", "plane", "client", "manager", "clock", "events", "eventually"})
_CLUSTER = pytest.StashKey["Cluster"]()
_MARKER = "ostinato(nodes=2, rbac=True): options of the cluster of a test"
_NODES = 2
_THRESHOLDS = (20_000, 5, 5)  # with Python's, collections of what is loaded take a third of the time of the tests


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # pytest rewrites the assertions of all modules in a package with a plugin: slow, and of no use here.
    getattr(pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("ostinato")
    group = parser.getgroup("ostinato", "Kubernetes controllers")
    group.addoption(
        "--cluster",
        metavar="KUBECONFIG",
        help="run tests that use a cluster on this one, each in a namespace of its own, instead of in this process",
    )
    group.addoption(
        "--explore-replay",
        metavar="WORLD",
        default="",
        help="run only this world in tests that explore faults; a failed test prints it",
    )
    group.addoption(
        "--explore-pictures",
        metavar="DIRECTORY",
        default="",
        help="write the timelines of failed explorations to this directory, as SVG",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


# Fixtures


@pytest.fixture
def _ostinato_loop(request: pytest.FixtureRequest) -> Iterator[TestLoop]:
    from ostinato.testing.loops import RealLoop, VirtualLoop  # noqa: PLC0415 - see the module

    loop: TestLoop = VirtualLoop() if "clock" in request.fixturenames else RealLoop()
    yield loop
    if (started := request.node.stash.get(_CLUSTER, None)) is not None:
        loop.run(started.close())  # for a test that did not run, because a fixture failed
    loop.close()


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """An API server of the test's own, with a client, managers and faults."""
    return _cluster(request)


@pytest.fixture
def plane(request: pytest.FixtureRequest) -> Cluster:
    """The cluster, with the controllers of Kubernetes, a scheduler and simulated nodes: Deployments become ready."""
    return _cluster(request)


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Client:
    """A client of an administrator, which faults do not affect."""
    return _cluster(request).client


@pytest.fixture
def manager(request: pytest.FixtureRequest) -> ClusterManager:
    """A manager: `await manager.start(widgets)`. It stops after the test, which fails if a controller has failed."""
    return _cluster(request).manager(rbac=_options(request.node).get("rbac", True))


@pytest.fixture
def events(request: pytest.FixtureRequest) -> Events:
    """The Events that controllers have recorded."""
    return _cluster(request).events


@pytest.fixture
def eventually(request: pytest.FixtureRequest) -> Eventually:
    """Wait for a condition: `await eventually(Deployment, "a", lambda each: each.spec.replicas == 3)`."""
    return _cluster(request).eventually


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> VirtualClock:
    """Virtual time: `await clock.advance(3600)`. Waits of the test and of its controllers take no real time."""
    return _cluster(request).clock


@pytest.fixture
def explore(request: pytest.FixtureRequest) -> Callable[..., Explored]:
    """Run an operator through every fault: `explore(websites, scenario=[create(site), delete(site)], worlds=2000)`."""
    try:
        from ostinato.testing.explore import explore as function  # noqa: PLC0415 - see the module
    except ModuleNotFoundError as error:
        pytest.fail(f"{error}; the fixtures need pip install 'ostinato[test]'", pytrace=False)

    def run(operator: Any, **options: Any) -> Explored:
        __tracebackhide__ = True
        options.setdefault("replay", request.config.getoption("--explore-replay"))
        options.setdefault("pictures", request.config.getoption("--explore-pictures"))
        return function(operator, **options)

    return run


def _cluster(request: pytest.FixtureRequest) -> Cluster:
    """Return the cluster of the test, created for the first fixture that needs it."""
    item = request.node
    if _CLUSTER not in item.stash:
        item.stash[_CLUSTER] = _new_cluster(request)
    found: Cluster = item.stash[_CLUSTER]
    return found


def _new_cluster(request: pytest.FixtureRequest) -> Cluster:
    item, names = request.node, request.fixturenames
    kubeconfig = request.config.getoption("--cluster")
    if "clock" in names and kubeconfig:
        pytest.skip("clock: time on a real cluster is not virtual")
    if "clock" in names and not _runs(item):
        pytest.fail("clock: another plugin runs this test in real time; remove its marker", pytrace=False)
    try:
        from ostinato.testing.cluster import Cluster  # noqa: PLC0415 - see the module
    except ModuleNotFoundError as error:
        pytest.fail(f"{error}; the fixtures need pip install 'ostinato[test]'", pytrace=False)
    if gc.get_threshold()[0] in range(1, _THRESHOLDS[0]):
        gc.set_threshold(*_THRESHOLDS)
    world = request.getfixturevalue("_ostinato_loop").world if _runs(item) else None
    nodes = _options(item).get("nodes", _NODES if "plane" in names else None)
    return Cluster(kubeconfig=kubeconfig, nodes=nodes, world=world)


def _options(item: pytest.Item) -> dict[str, Any]:
    marker = item.get_closest_marker("ostinato")
    options = {} if marker is None else dict(marker.kwargs)
    if unknown := sorted(set(options) - {"nodes", "rbac"}):
        pytest.fail(f"pytest.mark.ostinato has no option {unknown[0]}; options are nodes and rbac", pytrace=False)
    return options


# Running tests and asynchronous fixtures


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem() -> Generator[None, Any, Any]:
    """Take tests in virtual time back from pytest-asyncio, which takes all in its mode `auto`."""
    made = yield
    return [_ours(each) for each in made] if isinstance(made, list) else made


def _ours(item: Any) -> Any:
    if not _is_of_pytest_asyncio(item) or "clock" not in item.fixturenames:
        return item
    made = pytest.Function.from_parent(
        item.parent,
        name=item.name,
        callspec=getattr(item, "callspec", None),
        callobj=item.obj,
        fixtureinfo=item._fixtureinfo,
        keywords=item.keywords,
        originalname=item.originalname,
    )
    made.own_markers = [each for each in made.own_markers if each.name != "asyncio"]
    return made


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let the test's coroutine start and close its cluster, whoever runs it."""
    if _CLUSTER not in item.stash or not isinstance(item, pytest.Function):
        return (yield)
    function = item.obj
    if not iscoroutinefunction(function):
        used = ", ".join(sorted(_FIXTURES & set(item.fixturenames)))
        pytest.fail(f"{item.name} must be an `async def`: it uses {used}", pytrace=False)
    item.obj = _on_cluster(function, item.stash[_CLUSTER])
    try:
        return (yield)
    finally:
        item.obj = function


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Release the cluster: pytest keeps the items until the end."""
    try:
        return (yield)
    finally:
        if _CLUSTER in item.stash:
            del item.stash[_CLUSTER]


def _on_cluster(function: Callable[..., Any], cluster: Cluster) -> Callable[..., Any]:
    from ostinato.testing.errors import NotOnThisCluster  # noqa: PLC0415 - see the module

    @wraps(function)
    async def test(**fixtures: Any) -> None:
        try:
            async with cluster:
                await function(**fixtures)
        except NotOnThisCluster as error:
            pytest.skip(str(error))

    return test


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not _runs(pyfuncitem):
        return None
    loop: TestLoop = pyfuncitem._request.getfixturevalue("_ostinato_loop")
    names = pyfuncitem._fixtureinfo.argnames
    loop.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Run asynchronous fixtures of the tests that this plugin runs, on their loop."""
    original = function = fixturedef.func
    is_generator = isasyncgenfunction(function)
    if not (is_generator or iscoroutinefunction(function)) or fixturedef.scope != "function" or not _runs(request.node):
        return (yield)
    loop: TestLoop = request.getfixturevalue("_ostinato_loop")
    if (instance := request.instance) is not None and hasattr(function, "__func__"):
        function = function.__func__.__get__(instance)  # pytest has bound it to another instance of the class
    run: Callable[..., Any] = _generate if is_generator else _await
    fixturedef.func = partial(run, loop, function)  # type: ignore[misc]
    try:
        return (yield)
    finally:
        fixturedef.func = original  # type: ignore[misc]


def _await(loop: TestLoop, function: Callable[..., Any], *args: Any, **fixtures: Any) -> Any:
    return loop.run(function(*args, **fixtures))


def _generate(loop: TestLoop, function: Callable[..., AsyncIterator[Any]], *args: Any, **fixtures: Any) -> Any:
    values = function(*args, **fixtures)
    yield loop.run(_next(values))
    try:
        loop.run(_next(values))
    except StopAsyncIteration:
        return
    raise ValueError(f"fixture {getattr(function, '__name__', function)} has more than one yield")


async def _next(values: AsyncIterator[Any]) -> Any:
    return await anext(values)


def _runs(item: Any) -> bool:
    """Whether this plugin runs the test: it is asynchronous, uses a fixture of ours, and no other plugin runs it."""
    return (
        isinstance(item, pytest.Function)
        and iscoroutinefunction(getattr(item, "obj", None))
        and not _FIXTURES.isdisjoint(item.fixturenames)
        and item.get_closest_marker("anyio") is None
        and item.get_closest_marker("asyncio") is None
        and not _is_of_pytest_asyncio(item)
    )


def _is_of_pytest_asyncio(item: object) -> bool:
    return type(item).__module__.startswith("pytest_asyncio.")
