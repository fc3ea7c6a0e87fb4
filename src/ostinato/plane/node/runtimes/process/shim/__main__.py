"""Run the launcher."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [each for each in sys.path if os.path.abspath(each) != _HERE]  # import the modules only as a package
_NODE = os.path.normpath(os.path.join(_HERE, "..", "..", ".."))
sys.path += [
    os.path.dirname(_HERE),
    os.path.join(_NODE, "volumes"),
    os.path.normpath(os.path.join(_NODE, "..", "..", "world")),
]

from shim.launcher import main  # type: ignore[import-not-found]  # noqa: E402

main()
