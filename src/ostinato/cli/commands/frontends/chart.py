"""`ostinato chart template`: print the manifests of a Helm chart."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from ostinato.charts import Capabilities, ChartError, Engine, Release, Rendering, ValueOptions, load_chart, render_chart
from ostinato.cli.error import CommandError
from ostinato.gotemplate.strings import encode
from ostinato.world import World


class TemplateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato chart template --help`."""

    chart: str
    name: str = "release-name"
    namespace: str = "default"
    values: Sequence[str] = ()
    set: Sequence[str] = ()
    set_string: Sequence[str] = ()
    set_json: Sequence[str] = ()
    set_file: Sequence[str] = ()
    set_literal: Sequence[str] = ()
    include_crds: bool = False
    no_hooks: bool = False
    skip_tests: bool = False
    show_only: Sequence[str] = ()
    is_upgrade: bool = False
    kube_version: str | None = None
    api_versions: Sequence[str] = ()
    skip_schema_validation: bool = False
    notes: bool = False


def template(options: TemplateOptions) -> None:
    """Print what the options ask for."""
    try:
        text = _text(_rendered(options), options)
    except ChartError as error:
        raise CommandError(str(error)) from None
    sys.stdout.flush()
    sys.stdout.buffer.write(encode(text))


def _rendered(options: TemplateOptions) -> Rendering:
    world = World.real()
    try:
        return render_chart(
            load_chart(options.chart),
            ValueOptions(
                files=options.values,
                json=options.set_json,
                set=options.set,
                strings=options.set_string,
                from_files=options.set_file,
                literal=options.set_literal,
            ).values(),
            Engine(world),
            Release(options.name, options.namespace, upgrade=options.is_upgrade),
            Capabilities.of(options.kube_version, [one for each in options.api_versions for one in each.split(",")]),
            check_schema=not options.skip_schema_validation,
        )
    finally:
        world.executor.close()


def _text(rendering: Rendering, options: TemplateOptions) -> str:
    if options.notes:
        return rendering.notes
    text = rendering.text(include_crds=options.include_crds, hooks=not options.no_hooks, tests=not options.skip_tests)
    return rendering.only(options.show_only, text) if options.show_only else text
