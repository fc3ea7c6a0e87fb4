"""API server beside kube-apiserver and etcd: each on its own durable store, the same load on both."""

from __future__ import annotations

from contextlib import ExitStack

from bench.apiserver import build_load, ours, real
from bench.peers import Missing
from bench.suite.context import Context
from bench.suite.sections.load import alternate, phases

OURS, PEER = "ostinato", "kube-apiserver"


def measure(context: Context) -> None:
    program = build_load(context.go(), context.directory)
    reason = ""
    with ExitStack() as stack:
        targets = {OURS: stack.enter_context(ours(context.place("ours"), context.directory / "bytecode"))}
        try:
            targets[PEER] = stack.enter_context(real(context.kubernetes(), context.place("real")))
        except Missing as error:
            reason = str(error)
        values = alternate(context, program, targets, phases(context.wanted(), "api-"))
        memory = {name: target.resident() for name, target in targets.items()}
    for key in context.wanted():
        phase = {"api-watch": "events"}.get(key, key.removeprefix("api-"))
        if key == "api-memory":
            context.values(key, [memory[OURS]], [memory[PEER]] if PEER in memory else [], reason)
        else:
            context.values(key, values[OURS][phase], values[PEER][phase] if PEER in values else [], reason)
