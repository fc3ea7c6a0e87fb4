"""Projects for operators: generated, extended, and upgraded to new templates with three-way merges.

    create(Path("demo"), NewProject(name="demo"))
    extend(Path("demo"), lambda project: add_kind(project, NewKind(kind="Cup")))
    upgrade(Path("demo"))

The files of a project are a function of its record (`project.py`) and of the template's version (`templates/`).
"""

from ostinato.scaffold.addition import Hooks, NewKind, Subject, add_controller, add_kind, add_webhook, extend
from ostinato.scaffold.changes import Change
from ostinato.scaffold.creation import NewProject, create
from ostinato.scaffold.error import ScaffoldError
from ostinato.scaffold.project import Project, find_project, load_project
from ostinato.scaffold.upgrade import Upgrade, upgrade

__all__ = [
    "Change",
    "Hooks",
    "NewKind",
    "NewProject",
    "Project",
    "ScaffoldError",
    "Subject",
    "Upgrade",
    "add_controller",
    "add_kind",
    "add_webhook",
    "create",
    "extend",
    "find_project",
    "load_project",
    "upgrade",
]
