"""The sending side of a connection: frames of one turn in one write, data as windows allow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ostinato.grpc import frames
from ostinato.grpc.frames import FrameError, frame


class Outgoing:
    """Frames to be sent, and the windows of the peer."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._frames: list[bytes] = []  # of this turn of the loop
        self._is_scheduled = False
        self._max_frame = frames.MAX_FRAME
        self._initial_window = frames.DEFAULT_WINDOW
        self._window = frames.DEFAULT_WINDOW  # of the connection
        self._windows: dict[int, int] = {}  # of the streams whose window is not the initial one
        self._blocked: dict[int, tuple[bytes, int, bool]] = {}  # data, its position, whether it is the last, by stream

    def frame(self, data: bytes) -> None:
        """Send a frame with this turn's."""
        self._frames.append(data)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def hold(self) -> None:
        """Keep frames until `flush`, which the caller calls in this turn."""
        self._is_scheduled = True

    def flush(self) -> None:
        """Send the frames now."""
        self._is_scheduled = False
        if self._frames:
            data = b"".join(self._frames)
            self._frames.clear()
            self._write(data)

    def request(self, stream: int, head: bytes, data: bytes, *, is_last: bool) -> None:
        """Open a stream with its headers and first data."""
        self.frame(frame(frames.HEADERS, frames.END_HEADERS, stream, head))
        self.data(stream, data, is_last=is_last)

    def data(self, stream: int, data: bytes, *, is_last: bool) -> None:
        """Send data now, or as soon as the windows allow it."""
        if stream in self._blocked:
            before, at, _ = self._blocked[stream]
            self._blocked[stream] = before[at:] + data, 0, is_last
            return
        size = len(data)
        if size <= self._max_frame and size <= self._window and size <= self._windows.get(stream, self._initial_window):
            self._used(stream, size)
            self.frame(frame(frames.DATA, frames.END_STREAM if is_last else 0, stream, data))
        else:
            self._blocked[stream] = data, 0, is_last
            self._unblock(stream)

    def is_blocked(self, stream: int) -> bool:
        """Whether data of a stream waits for its window."""
        return stream in self._blocked

    @property
    def has_blocked(self) -> bool:
        """Whether data waits for a window."""
        return bool(self._blocked)

    def drop(self, stream: int) -> None:
        """Do not send the waiting data of a stream, and forget its window."""
        self._blocked.pop(stream, None)
        self._windows.pop(stream, None)

    def window(self, stream: int, size: int) -> None:
        """Take a WINDOW_UPDATE."""
        if stream == 0:
            self._window += size
            if self._window > frames.MAX_WINDOW:
                raise FrameError("window of the connection is too large")
            for blocked in list(self._blocked):
                self._unblock(blocked)
        elif stream in self._windows:
            self._windows[stream] += size
            if self._windows[stream] > frames.MAX_WINDOW:
                raise FrameError(f"window of stream {stream} is too large")
            self._unblock(stream)

    def settings(self, initial_window: int | None, max_frame: int | None) -> None:
        """Take the server's settings."""
        if max_frame is not None:
            if not frames.MAX_FRAME <= max_frame < 1 << 24:
                raise FrameError(f"SETTINGS_MAX_FRAME_SIZE of {max_frame}")
            self._max_frame = min(max_frame, 1 << 20)
        if initial_window is not None:
            if initial_window > frames.MAX_WINDOW:
                raise FrameError(f"SETTINGS_INITIAL_WINDOW_SIZE of {initial_window}")
            more = initial_window - self._initial_window
            self._initial_window = initial_window
            for stream in self._windows:
                self._windows[stream] += more
            for blocked in list(self._blocked):
                self._unblock(blocked)

    def _used(self, stream: int, size: int) -> None:
        self._window -= size
        self._windows[stream] = self._windows.get(stream, self._initial_window) - size

    def _unblock(self, stream: int) -> None:
        if stream not in self._blocked:
            return
        data, at, is_last = self._blocked.pop(stream)
        while True:
            room = min(self._max_frame, self._window, self._windows.get(stream, self._initial_window))
            if room <= 0 and at < len(data):
                self._blocked[stream] = data, at, is_last
                return
            part = data[at : at + room]
            at += len(part)
            is_end = at >= len(data)
            self._used(stream, len(part))
            self.frame(frame(frames.DATA, frames.END_STREAM if is_last and is_end else 0, stream, part))
            if is_end:
                return
