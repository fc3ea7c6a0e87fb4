"""Fuzz the parsers with atheris, guided by coverage.

    PYTHONPATH=src python -m tests.fuzz.coverage_guided -max_len=2048 -max_total_time=600 [CORPUS...]

`pip install atheris` first. Arguments are those of libFuzzer; an input that breaks a parser is kept as `crash-…`.
"""

from __future__ import annotations

import sys


def main() -> None:
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["ostinato"]):
        from tests.fuzz.parsers import check
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
