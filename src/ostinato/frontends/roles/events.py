"""Events of ansible-runner: one JSON document for each step of a run.

`Outcome` collects what the reconciler needs of them: the statistics at the end, failures that were neither ignored nor
rescued, and the period of the module `operator_sdk.util.requeue_after`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.time import Duration, TimeError

Json = dict[str, Any]

_HOST: Final = "localhost"
_REQUEUE: Final = ("operator_sdk.util.requeue_after", "requeue_after")
_COUNTS: Final = ("ok", "changed", "skipped", "failures")
_UNKNOWN: Final = "unknown playbook failure"


class AnsibleEvent(msgspec.Struct, kw_only=True):
    """An event, with the fields that are used."""

    event: str = ""
    created: str = ""
    stdout: str = ""
    event_data: Json = {}

    @property
    def task(self) -> str:
        return str(self.event_data.get("task") or "")

    @property
    def result(self) -> Json:
        found = self.event_data.get("res")
        return found if isinstance(found, dict) else {}

    @property
    def is_failure(self) -> bool:
        """Whether a task failed, and the failure was not ignored."""
        return self.event == "runner_on_failed" and not self.event_data.get("ignore_errors")

    @property
    def is_hidden(self) -> bool:
        """Whether the task has `no_log`; its result must not be shown."""
        return bool(self.result.get("_ansible_no_log")) or "censored" in self.result

    @property
    def message(self) -> str:
        if self.is_hidden:
            return "the output of the failed task has been hidden (no_log)"
        found = self.result.get("msg")
        return found if isinstance(found, str) and found else _UNKNOWN


class Outcome:
    """What the events of one run say about it."""

    def __init__(self) -> None:
        self.counts: Json | None = None  # with the time of completion; None until the run has ended properly
        self.failures: list[tuple[str, str]] = []  # task and message
        self.requeue_after: float | None = None
        self.problem = ""  # why the run gave no statistics, or a wrong period
        self._unreachable = False

    def add(self, event: AnsibleEvent) -> None:
        if event.event == "playbook_on_stats":
            data = event.event_data
            self.counts = {name: _count(data, name) for name in _COUNTS}
            self.counts["completion"] = event.created
            self._unreachable = bool(_count(data, "dark"))
        elif event.is_failure:
            self.failures.append((event.task, event.message))
        elif event.event == "runner_on_ok" and event.event_data.get("task_action") in _REQUEUE:
            self._set_period(event.result.get("period"))

    @property
    def has_failed(self) -> bool:
        """Whether a task failed, or the run did not end properly. Ignored and rescued failures do not count."""
        return self.counts is None or bool(self.counts["failures"]) or self._unreachable

    @property
    def message(self) -> str:
        """Why the run has failed."""
        texts = [message for _, message in self.failures] if self.counts is not None else []
        return "\n".join(dict.fromkeys(texts)) or self.problem or _UNKNOWN

    def _set_period(self, given: Any) -> None:
        try:
            self.requeue_after = Duration.parse(given if isinstance(given, str) else "").seconds
        except TimeError as error:
            self.problem = f"requeue_after: {error}"


def _count(data: Json, name: str) -> int:
    by_host = data.get(name)
    found = by_host.get(_HOST) if isinstance(by_host, dict) else None
    return found if isinstance(found, int) else 0


_decoder = msgspec.json.Decoder(AnsibleEvent)


def parse_event(line: bytes) -> AnsibleEvent | None:
    """Return the event of a line of output; None if it is not one."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = _decoder.decode(line)
    except msgspec.MsgspecError:
        return None
    return found if found.event else None
