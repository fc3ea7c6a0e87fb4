"""Provisioner, attacher and resizer of CSI drivers on this machine: in place of the programs that drivers bring along.

They serve the drivers whose sockets `Options.csi` names, and no others: two provisioners of one driver must not run.
"""

from __future__ import annotations

from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.storage.csi import attacher, provisioner, resizer
from ostinato.plane.controllers.storage.csi.drivers import ControllerDrivers


def add_to(manager: Manager, options: Options) -> None:
    if not options.csi:
        return
    drivers = ControllerDrivers(options.csi, manager.world.clock)
    provisioner.add_to(manager, drivers)
    attacher.add_to(manager, drivers)
    resizer.add_to(manager, drivers)
