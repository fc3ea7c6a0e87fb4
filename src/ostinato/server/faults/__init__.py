"""Faults that an API server deals to its clients on purpose: errors, lost answers, delays, broken watches.

`FaultyServer` stands between a transport and the core. A `Director` decides what happens to each request and to each
event of a watch: `Rules` follow a file, the explorer of `ostinato.testing` follows a plan.
"""

from ostinato.server.faults.operation import Operation, operation_of
from ostinato.server.faults.stage import AnswerLost, Director, FaultyServer, Proceed

__all__ = ["AnswerLost", "Director", "FaultyServer", "Operation", "Proceed", "operation_of"]
