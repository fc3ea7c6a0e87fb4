"""Record the cases: `python -m tests.contract.aggregation.record URL TOKEN HOST FILE`.

The API server must run with `--enable-aggregator-routing=true` and a front-proxy certificate named
`front-proxy-client`. `HOST`: an address of this machine, not loopback.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.contract.aggregation.cases import observe
from tests.stage.https_client import ApiClient


def main() -> None:
    url, token, host, file = sys.argv[1:]
    seen = asyncio.run(observe(ApiClient(url, token), host))
    Path(file).write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
