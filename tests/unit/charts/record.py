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
from typing import Any

from tests.unit.charts.surroundings import FILES, PARTIALS, VALUES

DATA = Path(__file__).parents[2] / "data" / "charts"


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


if __name__ == "__main__":
    record_expressions(Path(sys.argv[1]), Path(sys.argv[2]).read_text().splitlines() if len(sys.argv) > 2 else [])
