"""Write the page and its plots; with `--check`, only say whether they are those of the stored results."""

from __future__ import annotations

import argparse
import sys

from bench.report.files import made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is not as made")
    options = parser.parse_args()
    stale = []
    for file, text in made().items():
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(file)
        if not options.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        print(f"{'differs' if options.check else 'written'}: {file}")
    sys.exit(bool(stale) if options.check else 0)


main()
