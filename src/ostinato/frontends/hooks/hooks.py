"""Hooks: a directory of hooks, or Python hooks, as a runnable for a manager.

    Manager().add(Hooks("hooks/")).run()
    Manager().add(Hooks(labels, report)).run()

- The directory is that of shell-operator: executables that print their configuration with `--config`. Python files
  that import the decorators run in this process.
- A hook that cannot be loaded is logged, and the others run; if none can be loaded, `run` raises `HooksError`.
- With leader election, hooks run in the leader only; webhooks are served by every replica.
- `reload`: a change of a file loads its hook again, and starts it anew; a change of another file reloads all. If the
  new version cannot be loaded, the previous one goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from ostinato.controllers import FrontEnd
from ostinato.controllers.runnable import Dependencies
from ostinato.crd.rbac import Access
from ostinato.frontends.hooks.contexts import Rendering
from ostinato.frontends.hooks.debugging import debug_page
from ostinato.frontends.hooks.discovery import fingerprint
from ostinato.frontends.hooks.engine import Engine
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.loading import HooksError, Loaded, Loader, LoadOptions
from ostinato.frontends.hooks.metrics import HookMetrics
from ostinato.frontends.hooks.native import HookFunction
from ostinato.frontends.hooks.recording import RecordedRendering, request_of, result_of
from ostinato.frontends.hooks.running.executable import RunFiles
from ostinato.frontends.hooks.running.outcome import Outcome
from ostinato.frontends.hooks.statistics import Statistics
from ostinato.frontends.hooks.webhooks.serving import HookWebhooks, WebhookOptions
from ostinato.frontends.kernel.recording import DIRECTORY, recorded
from ostinato.frontends.kernel.sync import Decider, SyncRequest, SyncResult
from ostinato.http.server import HttpRequest, HttpResponse
from ostinato.metrics import CONTENT_TYPE, Registry
from ostinato.world import World
from ostinato.world.supervision import supervised

_POLL_SECONDS: Final = 1.0


class HooksOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `reload`: follow changes of the files. Defaults to False.
    - `strict`: a hook that cannot be loaded is an error. Defaults to False: the others run.
    - `proxy_json`: pass lines of hooks that are JSON on as they are. Defaults to False.
    - `keep_files`: do not remove the files of runs. Defaults to False.
    - `temporary`: directory for the files of runs. Defaults to a new one.
    - `webhooks`: how webhooks are served.
    """

    reload: bool = False
    strict: bool = False
    proxy_json: bool = False
    keep_files: bool = False
    temporary: str = ""
    webhooks: WebhookOptions = WebhookOptions()


class Hooks(FrontEnd):
    needs_leader_election = True

    def __init__(
        self,
        *sources: str | Path | HookFunction,
        name: str = "hooks",
        access: Sequence[Access] = (),
        options: HooksOptions | None = None,
    ) -> None:
        """
        - `sources`: directories, and Python hooks.
        - `name`: of the runnable. Defaults to "hooks".
        - `access`: what the hooks of directories need, for the derived role. Defaults to none.
        """
        if not sources:
            raise ValueError("Hooks() needs a directory or a @hook function")
        for each in sources:
            if not isinstance(each, str | Path | HookFunction):
                raise TypeError(f"Hooks() {each!r} is neither a directory nor a hook; write @hook(...) above it")
        self.name = name
        self.options = options or HooksOptions()
        self._functions = [each for each in sources if isinstance(each, HookFunction)]
        for each in self._functions:
            each.belongs_to = name
        self.watches = [kind for each in self._functions for kind in each.watches]
        self.access = [*access, *(rule for each in self._functions for rule in each.access)]
        self._directories = [Path(each) for each in sources if not isinstance(each, HookFunction)]
        self._metrics = HookMetrics()
        self._page = Registry()
        self._page.add(self._metrics.families)
        self._statistics = Statistics()
        self._engine: Engine | None = None
        self._loader: Loader | None = None
        self._webhooks: HookWebhooks | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._runs: dict[int, Callable[[], Awaitable[Outcome]]] = {}  # that are being recorded, by their request
        self._record = recorded(self._run_of)
        self.problems: list[str] = []

    @property
    def engine(self) -> Engine:
        """The queues and hooks, once it runs."""
        if self._engine is None:
            raise RuntimeError(f"{self.name}: the hooks have not been started")
        return self._engine

    @property
    def has_synced(self) -> bool:
        """Whether the bindings of all hooks have started, or one has failed."""
        return self._engine is not None and self._engine.has_started

    @property
    def metrics_handlers(self) -> Mapping[str, Callable[[HttpRequest], Awaitable[HttpResponse]]]:
        """Pages on the metrics endpoint: the metrics of hooks, and the state of queues and snapshots."""
        return {f"/metrics/{self.name}": self._metrics_page, f"/debug/{self.name}/": self._debug_page}

    async def _metrics_page(self, _: HttpRequest) -> HttpResponse:
        return HttpResponse(200, self._page.text().encode(), CONTENT_TYPE)

    async def _debug_page(self, request: HttpRequest) -> HttpResponse:
        return debug_page(self._engine, request.path.removeprefix(f"/debug/{self.name}/"))

    async def warm_up(self, dependencies: Dependencies) -> None:
        """Load the hooks, and serve their webhooks."""
        decide = self._recorded_run if os.environ.get(DIRECTORY) else None
        self._engine = engine = Engine(dependencies, self._metrics, self._statistics, decide)
        dependencies.metrics.add(self._statistics.families)
        self._loader = self._new_loader(dependencies)
        hooks = await self._load_all(dependencies)
        for hook in hooks:
            engine.prepare(hook)
        self._webhooks = HookWebhooks(dependencies, self.options.webhooks, engine.execute)
        await self._serve_webhooks()

    async def run(self, dependencies: Dependencies) -> None:
        """Run hooks until cancelled."""
        if self._engine is None:
            await self.warm_up(dependencies)
        engine = self.engine
        engine.start(list(engine.hooks.values()))
        name = f"{self.name}: files"
        follow = supervised(name, partial(self._follow, dependencies), dependencies.world.clock)
        following = asyncio.get_running_loop().create_task(follow, name=name)
        try:
            await engine.run()
        finally:
            following.cancel()
            await asyncio.wait([following])
            await self.tear_down(dependencies)

    async def tear_down(self, dependencies: Dependencies) -> None:
        """Stop the webhooks and the bindings, and remove the files of runs."""
        webhooks, self._webhooks = self._webhooks, None
        if webhooks is not None:
            await webhooks.stop()
        if self._engine is not None:
            for hook in list(self._engine.hooks.values()):
                await self._engine.remove(hook)
        dependencies.metrics.remove(self._statistics.families)
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    # Recording

    def deciders(self) -> Mapping[str, Decider]:
        return {self.name: self.decide}

    async def decide(self, request: SyncRequest) -> SyncResult:
        """Run a hook with the contexts of a recorded request. Operations are not executed."""
        world, name = World.real(), request.trigger.data["hook"]
        with tempfile.TemporaryDirectory(prefix="ostinato-replay-") as directory:
            options = LoadOptions(RunFiles(Path(directory)))
            loader = Loader(world, None, logging.getLogger("ostinato.frontends"), options)
            try:
                hooks = [loader.function(each) for each in self._functions]
                for each in self._directories:
                    hooks += (await loader.load(each)).hooks
                hook = next((each for each in hooks if each.name == name), None)
                if hook is None:
                    raise HooksError(f"{self.name} has no hook {name}, which is recorded")
                return result_of(await hook.program.run(RecordedRendering(request), {"hook": name}))
            finally:
                world.executor.close()

    async def _recorded_run(self, hook: Hook, rendering: Rendering, fields: Mapping[str, str]) -> Outcome:
        request, outcome = request_of(self.name, hook, rendering), Outcome()

        async def run() -> Outcome:
            nonlocal outcome
            outcome = await hook.program.run(rendering, fields)
            return outcome

        self._runs[id(request)] = run
        try:
            await self._record(request)
        finally:
            del self._runs[id(request)]
        return outcome

    async def _run_of(self, request: SyncRequest) -> SyncResult:
        return result_of(await self._runs[id(request)]())

    # Loading

    def _new_loader(self, dependencies: Dependencies) -> Loader:
        directory = self.options.temporary
        if not directory:
            self._temporary = tempfile.TemporaryDirectory(prefix="ostinato-hooks-")
            directory = self._temporary.name
        Path(directory).mkdir(parents=True, exist_ok=True)
        files = RunFiles(Path(directory), self.options.keep_files)
        zone = os.environ.get("TZ", "UTC").removeprefix(":") or "UTC"
        options = LoadOptions(files, self.options.proxy_json, zone)
        return Loader(dependencies.world, dependencies.client, dependencies.logger, options)

    async def _load_all(self, dependencies: Dependencies) -> list[Hook]:
        assert self._loader is not None, "warm_up() creates it"
        hooks = [self._loader.function(each) for each in self._functions]
        self.problems = []
        for directory in self._directories:
            loaded = await self._loader.load(directory)
            self._report(loaded, dependencies)
            hooks += loaded.hooks
        if self.problems and (self.options.strict or not hooks):
            raise HooksError("; ".join(self.problems))
        if not hooks:
            searched = ", ".join(map(str, self._directories))
            raise HooksError(f"{searched}: no hooks; a hook is a file with the execute bit set (chmod +x)")
        names = [each.name for each in hooks]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise HooksError(f"two hooks have the name {repeated[0]}; rename one of them")
        return hooks

    def _report(self, loaded: Loaded, dependencies: Dependencies) -> None:
        for warning in loaded.warnings:
            dependencies.logger.warning("file skipped file=%s", warning)
        for problem in loaded.problems:
            dependencies.logger.error("hook not loaded; the others run error=%s", problem)
        self.problems += loaded.problems

    async def _serve_webhooks(self) -> None:
        engine = self.engine
        for hook in engine.hooks.values():
            if hook.config.has_webhooks:
                await engine.start_monitors(hook)
        if self._webhooks is not None:
            await self._webhooks.serve(engine.hooks.values())

    # Following the files

    async def _follow(self, dependencies: Dependencies) -> None:
        if not self.options.reload or not self._directories:
            return
        known = {each: fingerprint(each) for each in self._directories}
        while True:
            await dependencies.world.clock.sleep(_POLL_SECONDS)
            for directory in self._directories:
                current = fingerprint(directory)
                if current != known[directory]:
                    changed = {path for path, _ in current.items() ^ known[directory].items()}
                    known[directory] = current
                    try:
                        await self._reload(changed, dependencies)
                    except Exception:
                        dependencies.logger.exception("reload failed directory=%s", directory)

    async def _reload(self, changed: set[str], dependencies: Dependencies) -> None:
        engine, loader = self.engine, self._loader
        assert loader is not None, "warm_up() creates it"
        self.problems = []
        loaded = [await loader.load(each) for each in self._directories]
        for each in loaded:
            self._report(each, dependencies)
        hooks = {hook.name: hook for each in loaded for hook in each.hooks}
        kept = {path for each in loaded for path in each.failed}  # the previous version goes on
        changed -= kept
        paths = {hook.path for hook in (*hooks.values(), *engine.hooks.values())}
        everything = not changed <= paths  # a library may have changed
        gone = [
            each
            for each in engine.hooks.values()
            if each.path and each.path not in kept and (everything or each.path in changed)
        ]
        for hook in gone:
            await engine.remove(hook)
        new = [each for name, each in hooks.items() if name not in engine.hooks]
        for hook in new:
            engine.prepare(hook)
        dependencies.logger.info(
            "hooks reloaded removed=%s started=%s",
            ",".join(each.name for each in gone),
            ",".join(each.name for each in new),
        )
        if any(each.config.has_webhooks for each in (*gone, *new)):
            await self._serve_webhooks()
        engine.start(new)
