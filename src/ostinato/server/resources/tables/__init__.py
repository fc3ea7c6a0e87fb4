"""Table rows: what `kubectl get` shows of each built-in kind.

`CELLS` has, by group and resource, the function that makes the cells of one row, in the order of the kind's columns.
It takes the object as it is stored and the present time, for ages are told by the server. Kinds that are not here show
their name and when they were created.
"""

from ostinato.server.resources.tables import access, cluster, devices, network, storage, workloads
from ostinato.server.resources.tables.cells import Cells, name_and_creation
from ostinato.server.resources.tables.cluster import flow_schema_order
from ostinato.server.resources.tables.pods import pod_conditions

CELLS: dict[tuple[str, str], Cells] = {
    **workloads.CELLS,
    **network.CELLS,
    **storage.CELLS,
    **cluster.CELLS,
    **access.CELLS,
    **devices.CELLS,
}

__all__ = ["CELLS", "Cells", "flow_schema_order", "name_and_creation", "pod_conditions"]
