"""The commands of `ostinato kudo` that work on a cluster."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from ostinato.api.codec import to_dict
from ostinato.api.errors import APIError
from ostinato.cli.commands.frontends.kudo.repositories import repository_of
from ostinato.cli.error import CommandError
from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.client.transport.exchange import NoSuchKind
from ostinato.client.transport.protocol import TransportError
from ostinato.frontends.plans.api import KINDS, REPAIR, Instance, InstanceStatus, Operator, OperatorVersion
from ostinato.frontends.plans.installing import PlanError, Plans, outcome
from ostinato.frontends.plans.package.files import PackageError
from ostinato.frontends.plans.package.resolving import (
    ClusterResolver,
    PackageResolver,
    Resolved,
    Resolver,
    resolve_dependencies,
)
from ostinato.frontends.plans.parameters import ParameterError, value_of_argument, values_of_file
from ostinato.frontends.plans.pictures import Node, history_tree, status_tree, tree
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.world import World

Json = dict[str, Any]
_UP = "\033[{}A\033[J"  # move the cursor up, and clear what is below


def run(name: str, options: argparse.Namespace) -> None:
    """Run a command; CommandError if it fails."""
    command: Callable[[argparse.Namespace, Plans], Awaitable[None]] = _COMMANDS[name]
    with _errors():
        if name == "init" and options.dry_run:
            _print(_definitions(), options.output or "yaml")
            return
        config = Config.load(options.context, options.kubeconfig)
        asyncio.run(_connected(command, options, config))


async def _connected(
    command: Callable[[argparse.Namespace, Plans], Awaitable[None]], options: argparse.Namespace, config: Config
) -> None:
    world = World.real()
    client = Client.connect(config, world=world, field_manager="ostinato-kudo")
    try:
        await command(options, Plans(client, getattr(options, "namespace", "") or config.namespace, _say))
    finally:
        await client.close()
        world.executor.close()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except NoSuchKind as error:
        raise CommandError(f"{error}; run `ostinato kudo init` first") from None
    except (PlanError, PackageError, ParameterError, ConfigError, APIError, TransportError) as error:
        raise CommandError(str(error)) from None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _print(data: Any, form: str) -> None:
    if form == "json":
        _say(json.dumps(data, indent=2))
    elif isinstance(data, list):
        sys.stdout.write(yaml.safe_dump_all(data, sort_keys=False))
    else:
        sys.stdout.write(yaml.safe_dump(data, sort_keys=False))


# Commands


def _definitions() -> list[Json]:
    from ostinato.crd import crd_of  # noqa: PLC0415 - for init only

    return [crd_of(kind) for kind in KINDS]


async def _init(options: argparse.Namespace, plans: Plans) -> None:
    for definition in _definitions():
        await plans.client.apply(definition, force=True)
        _say(f"customresourcedefinition {definition['metadata']['name']} applied")
        if options.wait:
            name = definition["metadata"]["name"]
            await plans.client.wait_for(CustomResourceDefinition, name, "Established", timeout=options.wait_timeout)
    if options.output:
        _print(_definitions(), options.output)


async def _install(options: argparse.Namespace, plans: Plans) -> None:
    parameters = _parameters(options)
    if options.in_cluster and (options.skip_instance or options.repo):
        raise PlanError("--in-cluster excludes --skip-instance and --repo; the version is installed already")
    found = await _resolved(options, plans)
    dependencies = await resolve_dependencies(found)
    if options.create_namespace:
        await plans.create_namespace(found.package.operator.spec.namespace_manifest)
    annotations = {REPAIR: "true"} if options.repair_drift else None
    name = await plans.install(
        found.package,
        dependencies,
        name=options.instance,
        parameters=parameters,
        skip_instance=options.skip_instance,
        annotations=annotations,
    )
    if options.wait and name:
        await plans.wait(name, options.wait_time)
        _say(f"instance {plans.namespace}/{name} ready")


async def _update(options: argparse.Namespace, plans: Plans) -> None:
    parameters = _parameters(options)
    if not parameters:
        raise PlanError("nothing to update; give at least one parameter with -p NAME=VALUE or -P FILE")
    before = await plans.update(options.instance, parameters)
    if options.wait:
        await plans.wait(options.instance, options.wait_time, before)


async def _upgrade(options: argparse.Namespace, plans: Plans) -> None:
    parameters = _parameters(options)
    found = await _resolved(options, plans)
    dependencies = await resolve_dependencies(found)
    before = await plans.upgrade(options.instance, found.package, dependencies, parameters)
    if options.wait:
        await plans.wait(options.instance, options.wait_time, before)


async def _uninstall(options: argparse.Namespace, plans: Plans) -> None:
    await plans.uninstall(options.instance, options.wait_time if options.wait else None)


async def _get(options: argparse.Namespace, plans: Plans) -> None:
    kinds: Mapping[str, type[Any]] = {"operators": Operator, "operatorversions": OperatorVersion, "instances": Instance}
    wanted = kinds if options.what == "all" else {options.what: kinds[options.what]}
    found = {
        name: [each async for each in plans.client.list(kind, namespace=plans.namespace)]
        for name, kind in wanted.items()
    }
    if options.output:
        _print([to_dict(each) for some in found.values() for each in some], options.output)
    elif options.what != "all":
        _say(f'List of current installed {options.what} in namespace "{plans.namespace}":')
        _say(tree(*(Node(each.metadata.name) for each in found[options.what])))
    else:
        _say(f'List of current installed operators including versions and instances in namespace "{plans.namespace}":')
        _say(tree(*_operators(found)))


def _operators(found: Mapping[str, list[Any]]) -> Iterator[Node]:
    for operator in found["operators"]:
        versions = [each for each in found["operatorversions"] if each.spec.operator.name == operator.metadata.name]
        yield Node(
            operator.metadata.name,
            [
                Node(
                    version.metadata.name,
                    [
                        Node(each.metadata.name)
                        for each in found["instances"]
                        if each.spec.operator_version.name == version.metadata.name
                    ],
                )
                for version in versions
            ],
        )


async def _plan_status(options: argparse.Namespace, plans: Plans) -> None:
    if options.output:
        instance = await plans.instance(options.instance)
        _print(to_dict(instance.status or InstanceStatus()), options.output)
        return
    first = await plans.instance(options.instance)
    await plans.version(first)
    picture = _Picture(plans)
    if not options.wait:
        await picture.draw(first)
        return
    drawn: list[Instance] = []

    def is_done(each: Instance | None) -> bool:
        if each is None:
            raise PlanError(f"instance {plans.namespace}/{options.instance} was deleted")
        drawn.append(each)
        picture.changed.set()
        return outcome(each) is not None

    waiting = asyncio.ensure_future(
        plans.client.wait_for(Instance, options.instance, is_done, timeout=options.wait_time or None)
    )
    while not waiting.done() or drawn:
        if drawn:
            latest = drawn[-1]
            drawn.clear()
            await picture.draw(latest)
        else:
            picture.changed.clear()
            await asyncio.wait(
                [waiting, asyncio.ensure_future(picture.changed.wait())], return_when=asyncio.FIRST_COMPLETED
            )
    last = await waiting
    problem = None if last is None else outcome(last)
    if problem:
        raise PlanError(problem)


class _Picture:
    """The tree on the terminal, drawn again in place when it changes."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._lines = 0
        self._last = ""
        self.changed = asyncio.Event()

    async def draw(self, instance: Instance) -> None:
        version = await self._plans.version(instance)
        text = status_tree(instance, version.spec)
        name = instance.metadata.name
        if text is None:
            if not self._last:
                _say(f"No plan ever run for instance - nothing to show for instance {name}")
                self._last, self._lines = "none", 1
            return
        if text == self._last:
            return
        if not self._lines or self._last == "none":
            _say(f'Plan(s) for "{name}" in namespace "{self._plans.namespace}":')
        elif sys.stdout.isatty():
            sys.stdout.write(_UP.format(self._lines))
        _say(text)
        self._last, self._lines = text, text.count("\n") + 1


async def _plan_history(options: argparse.Namespace, plans: Plans) -> None:
    _say(history_tree(await plans.instance(options.instance)))


async def _plan_trigger(options: argparse.Namespace, plans: Plans) -> None:
    plan = options.plan or options.name
    if not plan:
        raise PlanError("please choose the plan name with '--name=<planName>'")
    arguments = dict(map(value_of_argument, options.arguments))
    before = await plans.instance(options.instance)
    is_answered = await plans.request(options.instance, "run", plan=plan, arguments=arguments)
    _say(f"Triggered {plan} plan for {plans.namespace}/{options.instance} instance" + _unless(is_answered))
    if options.wait:
        await plans.wait(options.instance, options.wait_time, before)


async def _plan_cancel(options: argparse.Namespace, plans: Plans) -> None:
    is_answered = await plans.request(options.instance, "cancel", plan=options.name)
    _say(f"Cancelled the plan of {plans.namespace}/{options.instance}" + _unless(is_answered))


async def _plan_retry(options: argparse.Namespace, plans: Plans) -> None:
    is_answered = await plans.request(options.instance, "retry", plan=options.name)
    _say(f"The plan of {plans.namespace}/{options.instance} goes on" + _unless(is_answered))
    if options.wait:
        await plans.wait(options.instance, options.wait_time)


async def _plan_skip(options: argparse.Namespace, plans: Plans) -> None:
    fields = {"plan": options.name, "phase": options.phase, "step": options.step}
    is_answered = await plans.request(options.instance, "skip", **fields)
    _say(f"Skipped a step of the plan of {plans.namespace}/{options.instance}" + _unless(is_answered))
    if options.wait:
        await plans.wait(options.instance, options.wait_time)


def _unless(is_answered: bool) -> str:
    return "" if is_answered else "; no manager has answered yet, is `ostinato kudo manager` running?"


# Arguments


async def _resolved(options: argparse.Namespace, plans: Plans) -> Resolved:
    resolver: Resolver
    if getattr(options, "in_cluster", False):
        resolver = ClusterResolver(plans.client, plans.namespace)
    else:
        resolver = PackageResolver(Path(), repository_of(options.home, options.repo))
    return await resolver.resolve(options.package, options.app_version, options.operator_version)


def _parameters(options: argparse.Namespace) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in options.parameter_files:
        try:
            text = Path(name).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ParameterError(f"error reading from parameter file {name}: {error}") from None
        found |= values_of_file(text, name)
    return found | dict(map(value_of_argument, options.parameters))


_COMMANDS: dict[str, Callable[[argparse.Namespace, Plans], Awaitable[None]]] = {
    "init": _init,
    "install": _install,
    "update": _update,
    "upgrade": _upgrade,
    "uninstall": _uninstall,
    "get": _get,
    "plan_status": _plan_status,
    "plan_history": _plan_history,
    "plan_trigger": _plan_trigger,
    "plan_cancel": _plan_cancel,
    "plan_retry": _plan_retry,
    "plan_skip": _plan_skip,
}
