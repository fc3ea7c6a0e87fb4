"""`helm template` beside ours: the twenty charts of the tests, all variants.

    PYTHONPATH=src python -m bench.charts HELM

HELM is the helm binary (see tests/cluster/go/packages). Three ways: a process of Helm for each rendering, a process of
`ostinato chart template` for each, and one process of ours for all, as an operator does it. Processor time: other load
matters little.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ostinato.charts import Capabilities, ChartError, Engine, Release, ValueOptions, load_chart, render_chart
from ostinato.world import World

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.unit.charts.bundles import Bundle, bundles


def main() -> None:
    helm = sys.argv[1] if len(sys.argv) > 1 else "helm"
    with tempfile.TemporaryDirectory() as directory:
        cases = [
            (bundle, variant, Path(directory) / bundle.name) for bundle in bundles() for variant in bundle.variants
        ]
        for bundle, _, place in cases:
            bundle.write(place)
        ours = [sys.executable, "-m", "ostinato.cli", "chart", "template"]
        theirs = [helm, "template", "demo"]
        print(f"{len(cases)} renderings of {len({bundle.name for bundle, _, _ in cases})} charts, ms each")
        print(f"helm template, a process each             {_processes(theirs, cases):8.1f}")
        print(f"ostinato chart template, a process each   {_processes(ours, cases):8.1f}")
        engine = Engine(World.real())
        for name, best in (("first", 1), ("best of 5", 5)):
            taken = sum(min(_in_process(engine, *case) for _ in range(best)) for case in cases)
            print(f"ostinato.charts, one process ({name:9s})  {1000 * taken / len(cases):8.1f}")


def _processes(command: list[str], cases: list[tuple[Bundle, str, Path]]) -> float:
    start = os.times()
    for bundle, variant, place in cases:
        arguments = [str(place / "chart"), *bundle.options(variant, place)]
        subprocess.run([*command, *arguments], capture_output=True, check=False)
    end = os.times()
    taken = end.children_user - start.children_user + end.children_system - start.children_system
    return 1000 * taken / len(cases)


def _in_process(engine: Engine, bundle: Bundle, variant: str, place: Path) -> float:
    start = time.thread_time()
    options = bundle.options(variant, place)
    files = [options[at + 1] for at, each in enumerate(options) if each == "-f"]
    pairs = [options[at + 1] for at, each in enumerate(options) if each == "--set"]
    try:
        values = ValueOptions(files=files, set=pairs).values()
        render_chart(load_chart(place / "chart"), values, engine, Release("demo"), Capabilities()).text()
    except ChartError:
        pass  # some variants are errors
    return time.thread_time() - start


if __name__ == "__main__":
    main()
