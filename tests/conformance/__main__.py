from __future__ import annotations

import sys

from tests.conformance.command import main

sys.exit(main())
