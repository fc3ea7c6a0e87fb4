"""Worker: a copy of this process that runs worlds one after the other.

The first worlds of a copy are slow, since it copies the pages that it modifies, so that a worker is kept for several
batches. Its garbage is never collected: the worker is replaced after a number of steps, and takes the garbage with it.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Final, Self

import msgspec

from ostinato.testing.explore.plan import Plan
from ostinato.testing.explore.report import Report, Send
from ostinato.world.simulated import forks

Numbered = tuple[int, Plan]
Work = Callable[[Sequence[Numbered], Send], None]

_STEPS: Final = 60_000  # of the simulations of one worker, about 5 kB of garbage each
_END: Final = b"\n"  # of the reports of a batch

_decode_plans = msgspec.json.Decoder(list[Numbered]).decode
_decode_report = msgspec.json.Decoder(Report).decode


class Worker:
    def __init__(self, process: int, plans: BinaryIO, reports: BinaryIO) -> None:
        self._process = process
        self._plans = plans
        self._reports = reports
        self._steps = 0

    @classmethod
    def start(cls, work: Work) -> Self:
        """Copy this process. `work` is called there with each batch of plans and a function to send their reports."""
        (plans_in, plans_out), (reports_in, reports_out) = os.pipe(), os.pipe()

        def serve() -> None:
            os.close(plans_out)
            os.close(reports_in)
            with open(plans_in, "rb") as plans, open(reports_out, "wb") as reports:
                _serve(plans, reports, work)

        process = forks.fork_to(serve)
        os.close(plans_in)
        os.close(reports_out)
        return cls(process, open(plans_out, "wb"), open(reports_in, "rb"))

    def run(self, plans: Sequence[Numbered], steps: int) -> Iterator[Report]:
        """Run a batch of worlds with about this number of steps each; yields fewer reports if the copy ends."""
        self._plans.write(msgspec.json.encode(plans) + b"\n")
        self._plans.flush()
        for line in self._reports:
            if line == _END:
                break
            self._steps += steps
            yield _decode_report(line)

    @property
    def is_full(self) -> bool:
        """Whether it is to be replaced."""
        return self._steps >= _STEPS

    def close(self) -> int:
        """End the copy; return its exit code."""
        self._plans.close()
        self._reports.close()
        return forks.wait_for(self._process)


def _serve(plans: Iterable[bytes], reports: BinaryIO, work: Work) -> None:
    def send(report: Report) -> None:
        reports.write(msgspec.json.encode(report) + b"\n")
        reports.flush()  # the next world may end the process

    try:
        for line in plans:
            work(_decode_plans(line), send)
            reports.write(_END)
            reports.flush()
    except BaseException:
        traceback.print_exc()
        raise
