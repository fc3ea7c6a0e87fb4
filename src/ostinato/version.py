"""The version of this distribution: to ask the metadata of all that is installed takes a hundredth of a second."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
