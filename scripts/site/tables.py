"""Reference pages from what the program knows of itself: commands, metrics, options, errors."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import inspect
import re
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from api_pages import MODULES, annotation_text, error_classes, page_name, public

from ostinato import Context, ObjectMeta, controller
from ostinato.api.errors import InternalError
from ostinato.cli.app import make_parser
from ostinato.cli.parser import Parser
from ostinato.client.client import Client
from ostinato.client.transport.protocol import Request
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.metrics import Family
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.testing import Cluster
from ostinato.world import World

DURATION = "controller_runtime_reconcile_time_seconds"
_POLICIES = ("Fail", "Ignore")

_CONFIGURES = re.compile(r"(Options|Settings|Limits|LeaderElection|^Config|^Manager)$")


def index_page() -> str:
    """Return the list of the modules' pages, each with the first line of its docstring."""
    pages = ((name, page_name(name).rpartition("/")[2], _first(import_module(name))) for name in MODULES)
    rows = "".join(f"- [`{name}`]({page}): {text}\n" for name, page, text in pages)
    return (
        f"# Python modules\n\nFrom the docstrings. Names that are not listed here may change in any release.\n\n{rows}"
    )


def commands_page() -> str:
    """Return every command and option, from the parser."""
    parser = make_parser()
    parts = ["# Commands and options\n\nFrom the parser; `ostinato COMMAND --help` prints the same."]
    for name, command in sorted(parser.commands().items()):
        parts += _command(f"ostinato {name}", command, parser.summaries().get(name, ""))
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Parser, summary: str) -> list[str]:
    parts = [f"## `{name}`", (command.description or summary or "").strip()]
    for group in command._action_groups:
        shown = [each for each in group._group_actions if each.help != argparse.SUPPRESS and each.dest != "help"]
        shown = [each for each in shown if not isinstance(each, argparse._SubParsersAction)]
        if shown:
            title = f"**{group.title}**\n\n" if group.title not in ("options", "positional arguments") else ""
            rows = "".join(f"| `{_option(each)}` | {_help(each)} |\n" for each in shown)
            parts.append(f"{title}| option | meaning |\n|---|---|\n{rows}")
    for child, inner in command.commands().items():
        parts += [part.replace("## ", "### ", 1) for part in _command(f"{name} {child}", inner, "")]
    return parts


def _option(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return _code(" ".join([", ".join(action.option_strings), text]).strip() if action.option_strings else text)


def _help(action: argparse.Action) -> str:
    values: dict[str, Any] = {**vars(action), "prog": "ostinato"}
    return _cell((action.help or "") % values)


def metrics_page() -> str:
    """Return the metrics of an operator and of the API server, collected from programs that run."""
    operator, server = asyncio.run(_collected())
    note = """Collected from a running operator and API server. Metrics that count what has not happened yet appear with
the first event. [Metrics in production](../how-to/run-in-production.md#metrics) describes the endpoint."""
    tables = f"## Of an operator\n\n{_families(operator)}\n## Of the API server\n\n{_families(server)}"
    return f"# Metrics\n\n{note}\n\n{tables}"


async def _collected() -> tuple[list[Family], list[Family]]:
    @controller(ConfigMap)
    async def example(config_map: ConfigMap, ctx: Context) -> None: ...

    async with Cluster() as cluster:
        manager = await cluster.manager().start(example)
        await cluster.client.create(ConfigMap(metadata=ObjectMeta(name="a")))
        await cluster.eventually(lambda: any(each.name == DURATION for each in manager.metrics.collect()))
        operator = manager.metrics.collect()
    world = World.real()
    server = Server(world, MemoryLog())
    await server.start()
    transport = InProcessTransport(server)
    await transport.request(Request("GET", "/api/v1/namespaces"))
    await _call_webhooks(server)
    response = await transport.request(Request("GET", "/metrics"))
    text = (await response.read()).decode()
    await server.close()
    world.executor.close()
    return operator, _parsed(text)


async def _call_webhooks(server: Server) -> None:
    """Call admission webhooks that fail, so that their metrics appear."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    webhook = {
        "clientConfig": {"service": {"namespace": "default", "name": "none"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    webhooks = [{**webhook, "name": f"{policy.lower()}.example.com", "failurePolicy": policy} for policy in _POLICIES]
    async with Client(InProcessTransport(server), world=server.world) as client:
        await client.create(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "example"},
                "webhooks": webhooks,
            }
        )
        with suppress(InternalError):
            await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))


def _parsed(text: str) -> list[Family]:
    found: dict[str, Family] = {}
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        found[name] = Family(name, kind, helps.get(name, ""), [])
    return [found[name] for name in sorted(found)]


def _families(families: Iterable[Family]) -> str:
    rows = "".join(f"| `{each.name}` | {each.kind} | {_cell(each.help)} |\n" for each in families)
    return f"| metric | type | meaning |\n|---|---|---|\n{rows}"


def configuration_page() -> str:
    """Return the options of the framework: the dataclasses and constructors that take them."""
    note = """The classes that take options, with their defaults. `ostinato run` sets some of them by [options of the
command](commands.md#ostinato-run); `[tool.ostinato] run` in pyproject.toml names what it runs."""
    parts = [f"# Configuration\n\n{note}"]
    for module in ("ostinato.manager", "ostinato.controllers", "ostinato.cache", "ostinato.client", "ostinato.webhook"):
        for name, value in public(import_module(module)):
            if inspect.isclass(value) and _CONFIGURES.search(name) and not issubclass(value, dict):
                parts.append(f"## `{module}.{name}`\n\n{inspect.cleandoc(value.__doc__ or '')}\n\n{_parameters(value)}")
    return "\n\n".join(parts) + "\n"


def _parameters(value: type) -> str:
    rows = ""
    for each in inspect.signature(value).parameters.values():
        default = "required" if each.default is inspect.Parameter.empty else f"`{_code(_default(value, each))}`"
        rows += f"| `{each.name}` | `{_code(annotation_text(each.annotation))}` | {default} |\n"
    notes = inspect.cleandoc(getattr(value, "__init__").__doc__ or "") if not dataclasses.is_dataclass(value) else ""  # noqa: B009
    notes = "" if notes.startswith("Initialize self") else notes
    return f"| option | type | default |\n|---|---|---|\n{rows}\n{notes}"


def _default(value: type, parameter: inspect.Parameter) -> str:
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name == parameter.name and field.default_factory is not dataclasses.MISSING:
                return f"{getattr(field.default_factory, '__name__', 'made')}()"
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(parameter.default))
    return text if len(text) < 80 else f"{type(parameter.default).__name__}()"


def errors_page() -> str:
    """Return the exceptions of the public modules."""
    rows = ""
    for name, value in error_classes().items():
        base = value.__bases__[0].__name__
        text = _first(value) if value.__doc__ and value.__doc__ != value.__bases__[0].__doc__ else ""
        code = getattr(value, "_code", 0)
        text = text or (f"The server answers {code} {getattr(value, '_reason', '')}." if code else "")
        rows += f"| `{name}` | `{base}` | {_cell(text)} |\n"
    note = """What the framework raises. Messages name the object, the field and the fix. API errors are subclasses of
`APIError`, by the reason of the server's Status."""
    return f"# Errors\n\n{note}\n\n| error | subclass of | raised if |\n|---|---|---|\n{rows}"


def _first(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _cell(text: str) -> str:
    return _code(text).replace("<", "&lt;")


def _code(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
