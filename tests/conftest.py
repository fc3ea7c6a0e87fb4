"""What several kinds of tests share: a running API server, and the workers that run tests at the same time.

Each worker has an API server of its own. A file is run by one worker, in order, for its tests may share what is costly
to have; but each group of recorded answers stands alone. Those come first that mostly wait: short ones fill the gaps.
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from ostinato.testing import plugin
from tests.stage.stores import KINDS, Stores

GO = Path(__file__).resolve().parent / "cluster" / "go"
ALONE = ("test_conversations.py", "test_transcripts.py", "test_pages.py")  # each of their tests is for itself
VERSION = "v1.36.4"  # of the modules that go.mod names there
ADMIN_TOKEN = "admin-token-for-tests"

# How long an example takes says more of the machine than of the test. The examples are the same each time: others are
# looked at on purpose, with --hypothesis-profile=explore.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("any machine", settings.get_profile("explore"), derandomize=True)
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if not pluginmanager.has_plugin("ostinato"):  # an environment that was installed before the plugin existed
        pluginmanager.register(plugin, "ostinato")
    parser.addoption("--fuzz", type=int, metavar="N", help="number of inputs per fuzz test (default: a small number)")
    parser.addoption("--over-http", action="store_true", help="run tests/unit/plane over HTTPS")
    parser.addoption("--real", metavar="PROGRAM", help="program that starts Kubernetes (default: $OSTINATO_REAL)")
    parser.addoption(
        "--store", choices=KINDS, default=KINDS[0], help="store of the servers of tests/contract (default: %(default)s)"
    )
    parser.addoption(
        "--update-counts", action="store_true", help="raise the counts in tests/contract/counts.json to the new results"
    )


def pytest_configure() -> None:
    """Let SIGINT end the programs of the tests, also if the suite was started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exempt what lives as long as the tests from garbage collection: modules, recordings, the tests themselves."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the pages of the documentation that took longest."""
    pages = "tests/docs/test_pages.py::test_the_blocks"
    passed = (each for each in terminalreporter.stats.get("passed", []) if each.nodeid.startswith(pages))
    slowest = sorted(passed, key=lambda each: -each.duration)[:5]
    if slowest:
        times = ", ".join(f"{each.nodeid.partition('[')[2].rstrip(']')} {each.duration:.1f} s" for each in slowest)
        terminalreporter.write_line(f"slowest pages: {times}")


class Scheduling(LoadScopeScheduling):
    """Which tests a worker runs in one go."""

    def _split_scope(self, nodeid: str) -> str:
        if self.config.getoption("--cluster"):
            return ""  # there is but one: all tests are one worker's
        file = nodeid.partition("::")[0]
        return nodeid if file.endswith(ALONE) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    config.option.loadscopereorder = False  # they are in good order
    return Scheduling(config, log)


@contextmanager
def one_at_a_time(file: Path) -> Iterator[None]:
    """Other processes that want the same file wait until it is done."""
    with file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass
class ApiServer:
    """An `ostinato apiserver` in a process of its own."""

    url: str
    token: str
    ca: Path
    kubeconfig: Path
    log: Path
    pid: int


@contextmanager
def started_apiserver(
    place: Path, options: Sequence[str] = (), store: Sequence[str] = ("--store", "memory")
) -> Iterator[ApiServer]:
    """A server with these options, whose files are in a place."""
    tokens = place / "tokens.csv"
    tokens.write_text(f'{ADMIN_TOKEN},admin,admin-uid,"system:masters"\n')
    kept = place / "state"
    command = [sys.executable, "-m", "ostinato.cli", "apiserver", "--listen", "127.0.0.1:0", "--state", str(kept)]
    command += [*store, "--token-auth-file", str(tokens), *options]
    with (place / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ})
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert "https://" in ready, f"no ready line but {ready!r}; log: {(place / 'log').read_text()[-2000:]}"
        url = next(word for word in ready.replace("(", " ").split() if word.startswith("https://")).rstrip(",.)")
        try:
            yield ApiServer(url, ADMIN_TOKEN, kept / "ca.crt", kept / "admin.kubeconfig", place / "log", process.pid)
            process.terminate()
            assert process.wait(10) == 0, f"it ended with {process.returncode}: {(place / 'log').read_text()[-2000:]}"
        finally:
            process.kill()
            process.wait(10)
            process.stdout.close()


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """The stores of `--store`."""
    with Stores.of_kind(request.config.getoption("--store"), tmp_path_factory.mktemp("etcd")) as stores:
        yield stores


@pytest.fixture(scope="session")
def apiserver(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    place = tmp_path_factory.mktemp("apiserver")
    with started_apiserver(place, store=stores.options(place)) as server:
        yield server


@pytest.fixture(scope="session")
def go_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl and the other Go programs are, built on first use.

    OSTINATO_GO_PROGRAMS names a place that outlives the run.
    """
    return built_programs(tmp_path_factory, GO, ["./kubectl", "./clients"], "k8s.io/component-base/version.git")


@pytest.fixture(scope="session")
def package_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Helm and the validator of OLM bundles are, like `go_programs`."""
    packages = ["helm.sh/helm/v3/cmd/helm", "./bundle"]
    return built_programs(tmp_path_factory, GO / "packages", packages, "helm.sh/helm/v3/pkg/chartutil.k8sVersion")


def built_programs(
    tmp_path_factory: pytest.TempPathFactory, module: Path, packages: Sequence[str], version: str
) -> Path:
    """Build Go programs unless they are there. `version`: prefix of the variables with the version of Kubernetes."""
    kept = os.environ.get("OSTINATO_GO_PROGRAMS")
    of_all = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_all = of_all.parent
    place = Path(kept) if kept else of_all / "go"
    place.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(place / f"lock-{module.name}"):
        if not all((place / package.rpartition("/")[2]).exists() for package in packages):
            build(place, module, packages, version)
    return place


def build(place: Path, module: Path, packages: Sequence[str], version: str) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go to build the programs with")
    stamp = " ".join(
        f"-X {version}{name}={value}" for name, value in (("Version", VERSION), ("Major", "1"), ("Minor", "36"))
    )
    command = [go, "build", "-trimpath", "-ldflags", f"-s -w {stamp}", "-o", f"{place}/", *packages]
    built = subprocess.run(command, cwd=module, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"the Go programs cannot be built here: {built.stderr[-500:]}")
