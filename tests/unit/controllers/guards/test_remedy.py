"""Hints for kinds that may not be watched: the file that they name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KINDS = """
from ostinato import CustomResource

class Thing(CustomResource, group="example.dev", version="v1"): ...
"""

PROGRAM = """
from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupResource
from ostinato.client.views import view_of
from ostinato.controllers.guards.remedy import remedy_for
from ostinato.kinds.core_v1 import ConfigMap
from things import Thing

for kind in (Thing, ConfigMap):
    print(remedy_for(view_of(kind), Forbidden.of(GroupResource("", "things"), "", "no")))
"""


def test_the_hint_names_the_program_that_was_run(tmp_path: Path) -> None:
    """Not the file with the class, which does not define the controller and so yields no role."""
    (tmp_path / "things.py").write_text(KINDS)
    (tmp_path / "ok.py").write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for arguments, named in ((["ok.py"], "ok.py"), ([str(tmp_path / "ok.py")], "ok.py"), (["-m", "ok"], "ok")):
        command = [sys.executable, *arguments]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert run.stdout == f"; `ostinato manifests {named}` writes the role that it needs\n" * 2
