"""Record what Helm makes of expressions and charts: `python -m tests.unit.charts.record PROGRAMS [FILE]`.

PROGRAMS is a directory with `expressions` and `helm`, built in tests/cluster/go/packages. FILE has further expressions,
a line each; those that are recorded are recorded again.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.unit.charts.bundles import DATA, Bundle, bundles
from tests.unit.charts.surroundings import FILES, PARTIALS, VALUES


def unpacked(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}


def packed(path: Path, value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def record_expressions(programs: Path, further: list[str]) -> None:
    path = DATA / "expressions.json.gz"
    wanted = sorted({*unpacked(path), *further})
    given = {"values": VALUES, "files": FILES, "partials": PARTIALS, "expressions": wanted}
    command = [str(programs / "expressions")]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    packed(path, {each: [it.get("out"), it.get("error")] for each, it in zip(wanted, answers, strict=True)})


def helm_template(helm: Path, bundle: Bundle, variant: str, place: Path) -> list[str | None]:
    """Render with Helm: the output, or the error."""
    command = [str(helm), "template", "demo", str(place / "chart"), *bundle.options(variant, place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return [done.stdout, None]
    lines = done.stderr.partition("Error: ")[2].replace(f"{place}/", "").splitlines()
    return [None, "\n".join(line for line in lines if line and not line.startswith("Use --debug"))]


def record_charts(programs: Path) -> None:
    found = {}
    for bundle in bundles():
        with TemporaryDirectory() as directory:
            place = Path(directory)
            bundle.write(place)
            found[bundle.name] = {
                variant: helm_template(programs / "helm", bundle, variant, place) for variant in bundle.variants
            }
    packed(DATA / "charts.json.gz", found)


if __name__ == "__main__":
    record_charts(Path(sys.argv[1]))
    record_expressions(Path(sys.argv[1]), Path(sys.argv[2]).read_text().splitlines() if len(sys.argv) > 2 else [])
