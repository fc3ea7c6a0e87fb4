"""Charts of these tests, each in one file: `=== PATH` begins a file of the chart.

- `=== @library NAME`: the chart contains the library chart of that bundle.
- `=== @variants`: a line each, `NAME | options of helm template`.
- `=== @values/FILE`: a file for the options, in which it is `values/FILE`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "charts"


@dataclass
class Bundle:
    name: str
    files: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    variants: dict[str, list[str]] = field(default_factory=dict)

    def write(self, place: Path) -> None:
        """Write the chart to `place/chart`, and the files for options to `place/values`."""
        for kind, files in (("chart", self.files), ("values", self.values)):
            for name, text in files.items():
                path = place / kind / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def options(self, variant: str, place: Path) -> list[str]:
        """Return the options of a variant, with the paths of the files."""
        return [each.replace("values/", f"{place}/values/") for each in self.variants[variant]]


def read(path: Path) -> Bundle:
    bundle = Bundle(path.stem)
    for part in re.split(r"^=== ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        if name.startswith("@library "):
            library = name.removeprefix("@library ")
            inner = read(path.with_name(f"{library}.chart")).files
            bundle.files |= {f"charts/{library}/{each}": content for each, content in inner.items()}
        elif name == "@variants":
            for line in text.splitlines():
                variant, _, options = line.partition(" |")
                bundle.variants[variant] = options.split()
        elif name.startswith("@values/"):
            bundle.values[name.removeprefix("@values/")] = text
        else:
            bundle.files[name] = text
    return bundle


def bundles() -> list[Bundle]:
    """Return the charts, without libraries."""
    return [bundle for path in sorted((DATA / "sources").glob("*.chart")) if (bundle := read(path)).variants]
