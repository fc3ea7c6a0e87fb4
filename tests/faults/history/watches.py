"""W1-W11 and A2: what each watch delivered, beside the writes of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.faults.history.records import Frame, History, Stream
from tests.faults.history.truth import Commit, Truth
from tests.faults.history.violation import Violation

_Expected = tuple[str, Commit, Commit | None]


def check_watches(history: History, truth: Truth) -> None:
    for stream in history.streams:
        _check_refusal(stream)
        _check_bookmarks(stream)
        _check_events(stream, truth)
        _check_deletions(stream)


def _events(stream: Stream) -> list[Frame]:
    return [frame for frame in stream.frames if frame.key]


def _check_refusal(stream: Stream) -> None:
    """W9: 410 exactly if the resourceVersion is compacted, as far as the server's own is known."""
    if stream.server is None or stream.answered is None or stream.starts_with_state or not stream.asked.isdigit():
        return
    asked = int(stream.asked)
    if stream.refused == "Expired" and not _events(stream) and asked >= stream.answered[0]:
        what = f"refused {asked} as compacted, but the server had everything after {stream.answered[0]}"
        raise Violation("W9", stream.prefix, what, [stream])
    if not stream.refused and stream.frames and asked < stream.server[0]:
        what = f"served from {asked}, although everything up to {stream.server[0]} was compacted"
        raise Violation("W9", stream.prefix, what, [stream])


def _check_bookmarks(stream: Stream) -> None:
    """W5, W7, W11: bookmarks do not go back, and no event follows that is not newer."""
    last: Frame | None = None
    initial = 0
    for frame in stream.frames:
        if frame.type == "BOOKMARK":
            if last is not None and frame.version < last.version:
                raise Violation("W5", stream.prefix, "a bookmark went back", [stream, last, frame])
            last = frame
            initial += frame.ends_initial
        elif frame.key and last is not None and frame.version <= last.version:
            what = f"an event of {frame.version} followed a bookmark of {last.version}"
            raise Violation("W11", frame.key, what, [stream, last, frame])
    if initial > stream.starts_with_state:
        raise Violation("W7", stream.prefix, f"{initial} bookmarks end the initial events", [stream])


def _check_events(stream: Stream, truth: Truth) -> None:
    events = _events(stream)
    marks = [frame.version for frame in stream.frames if frame.type == "BOOKMARK"]
    if stream.starts_with_state:
        start, live = _check_initial(stream, events, truth)
        if start is None:
            return
    else:
        if not stream.asked.isdigit():
            return  # from the newest resourceVersion, whichever that was
        start, live = int(stream.asked), events
    _check_order(stream, live)
    if live and live[0].version <= start:
        name = "W10" if stream.server is not None and start > stream.server[1] else "W4"
        what = f"a watch from {start} delivered {live[0].version}"
        raise Violation(name, live[0].key, what, [stream, live[0]])
    until = max([*marks, live[-1].version if live else 0])
    _check_sequence(stream, live, list(truth.between(start, until, stream.prefix, stream.group)), truth)


def _check_order(stream: Stream, live: Sequence[Frame]) -> None:
    seen: set[int] = set()
    for before, after in pairwise(live):
        seen.add(before.version)
        if after.version == before.version:
            raise Violation("W2", after.key, f"{after.version} was delivered twice", [stream, before, after])
        if after.version < before.version:
            name = "W2" if after.version in seen else "W1"
            raise Violation(name, after.key, f"{after.version} came after {before.version}", [stream, before, after])


def _check_sequence(stream: Stream, live: Sequence[Frame], wanted: Sequence[_Expected], truth: Truth) -> None:
    resumed = stream.asked not in ("", "0")
    delivered = {frame.version: frame for frame in live}
    for type_, commit, before in wanted:
        frame = delivered.pop(commit.version, None)
        if frame is None:
            later = next((each for each in stream.frames if each.version > commit.version), "")
            name = "W11" if isinstance(later, Frame) and later.type == "BOOKMARK" else "W4" if resumed else "W3"
            if stream.watcher.startswith("slow"):
                name = "W8"
            elif stream.group is not None and name == "W3":
                name = "W6"
            what = f"{commit.version} was not delivered, but later ones were"
            raise Violation(name, commit.key, what, [stream, commit.seen, later])
        loose = truth.may_be_absent(commit.key) and {frame.type, type_} == {"ADDED", "MODIFIED"}
        if frame.type != type_ and not loose:
            what = f"{frame.version} is {frame.type}, and should be {type_}"
            raise Violation("W6", commit.key, what, [stream, "" if before is None else before.seen, frame])
        value = commit.value if type_ != "DELETED" or before is None else before.value
        if frame.value != value and not truth.may_be_absent(commit.key):
            what = f"{frame.version} has value {frame.value}, and should have {value}"
            raise Violation("W6", commit.key, what, [stream, commit.seen, frame])
    for frame in delivered.values():
        if truth.is_exact or stream.group is None:
            raise Violation("W3", frame.key, f"{frame.version} was delivered, but not written", [stream, frame])


def _check_initial(stream: Stream, events: Sequence[Frame], truth: Truth) -> tuple[int | None, Sequence[Frame]]:
    """W7: find where the initial events end; return their resourceVersion and the live events."""
    ends = next((frame for frame in stream.frames if frame.ends_initial), None)
    if ends is not None:
        count = sum(1 for frame in stream.frames[: stream.frames.index(ends)] if frame.key)
        problem = _differs(events[:count], ends.version, stream, truth)
        if problem:
            raise Violation("W7", problem[0], problem[1], [stream, *problem[2], ends])
        return ends.version, events[count:]
    if stream.refused or not events:
        return None, ()
    first = next((n for n, frame in enumerate(events) if frame.type != "ADDED"), len(events))
    problem = None
    for count in range(first, -1, -1):
        initial, live = events[:count], events[count:]
        oldest = max((frame.version for frame in initial), default=0)
        if live and live[0].version <= oldest:
            continue
        newest = live[0].version - 1 if live else oldest
        found = _differs(initial, newest, stream, truth)
        if found is None:
            return newest, live
        problem = problem or found
        if len(events) == first and [frame.key for frame in events] == sorted(frame.key for frame in events):
            return None, ()  # in the order of initial events, which a lost connection may have ended
    if problem is None or len(events) == first:  # it may have ended amid the initial events
        return None, ()
    raise Violation("W3", problem[0], f"initial events: {problem[1]}", [stream, *problem[2]])


def _differs(
    initial: Iterable[Frame], version: int, stream: Stream, truth: Truth
) -> tuple[str, str, Sequence[object]] | None:
    then = truth.state(version, stream.prefix, stream.group)
    for frame in initial:
        commit = then.pop(frame.key, None)
        if frame.type != "ADDED" or commit is None or commit.version != frame.version:
            return frame.key, f"{frame.version} is not its state at {version}", [frame, getattr(commit, "seen", "")]
    for key, commit in then.items():
        if not truth.may_be_absent(key):
            return key, f"missing at {version}", [commit.seen]
    return None


def _check_deletions(stream: Stream) -> None:
    """A2: nothing of an object follows its deletion, which has the largest resourceVersion."""
    if stream.group is not None:
        return
    gone: dict[str, Frame] = {}
    for frame in stream.frames:
        if not frame.uid:
            continue
        if frame.uid in gone:
            what = f"{frame.type} after its deletion"
            raise Violation("A2", frame.key, what, [stream, gone[frame.uid], frame])
        if frame.type == "DELETED":
            gone[frame.uid] = frame
