"""Manager: runs controllers, elects a leader, records Events, serves health and metrics, shuts down gracefully.

Manager().add(widgets).run()
Manager(leader_election="widgets", health=":8081", metrics=":8080").add(widgets).run()
"""

from ostinato.manager.connecting import Connect, Purpose
from ostinato.manager.connections import CacheOptions
from ostinato.manager.election.elector import LeadershipLost
from ostinato.manager.election.settings import LeaderElection
from ostinato.manager.events.events import Events
from ostinato.manager.events.recorders import CoreEventRecorder, EventRecorder
from ostinato.manager.group import Stopped
from ostinato.manager.lifecycle import ShutdownTimedOut
from ostinato.manager.logs import JsonFormatter, ReconcileFilter, TextFormatter, configure_logging
from ostinato.manager.manager import Manager
from ostinato.manager.options import ClientOptions, ReportingOptions
from ostinato.manager.running import run, serve_together
from ostinato.manager.serving.health import Check
from ostinato.manager.serving.metrics import MetricsHandler, MetricsOptions
from ostinato.manager.sharding.settings import Sharding

__all__ = [
    "CacheOptions",
    "Check",
    "ClientOptions",
    "Connect",
    "CoreEventRecorder",
    "EventRecorder",
    "Events",
    "JsonFormatter",
    "LeaderElection",
    "LeadershipLost",
    "Manager",
    "MetricsHandler",
    "MetricsOptions",
    "Purpose",
    "ReconcileFilter",
    "ReportingOptions",
    "Sharding",
    "ShutdownTimedOut",
    "Stopped",
    "TextFormatter",
    "configure_logging",
    "run",
    "serve_together",
]
