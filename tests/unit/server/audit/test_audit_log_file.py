"""The audit log as a file: modes, rotation, backups."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from ostinato.server.audit.log_file import LogFile
from ostinato.server.audit.settings import AuditLogSettings
from ostinato.world import Clock

LINE = b"x" * (600 * 1024) + b"\n"  # two do not fit into a megabyte


def _files(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


class Calendar:
    """A clock of which only the date counts."""

    def __init__(self) -> None:
        self.today = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.today


def _write(place: Path, days: float = 0, times: int = 3, **settings: Any) -> None:
    calendar = Calendar()
    log = LogFile(AuditLogSettings(path=str(place / "audit.log"), max_size=1, **settings), cast("Clock", calendar))
    for _ in range(times):
        log.write(LINE)
        calendar.today += timedelta(days=days, seconds=1)
    log.close()


def test_a_file_that_is_full_is_rotated(tmp_path: Path) -> None:
    _write(tmp_path)
    *backups, current = (
        [path for path in sorted(tmp_path.iterdir()) if path.name != "audit.log"],
        tmp_path / "audit.log",
    )
    assert len(backups[0]) == 2
    assert current.read_bytes() == LINE
    assert all(path.read_bytes() == LINE for path in backups[0])


def test_audit_files_have_mode_0600(tmp_path: Path) -> None:
    _write(tmp_path / "logs", compress=True)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "logs").iterdir()} == {0o600}
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700


def test_backups_beyond_the_limit_are_removed(tmp_path: Path) -> None:
    _write(tmp_path, times=6, max_backups=2)
    assert len(_files(tmp_path)) == 3


def test_backups_beyond_the_age_are_removed(tmp_path: Path) -> None:
    (tmp_path / "audit-unrelated.log").touch()
    _write(tmp_path, days=2, times=6, max_age=3)
    assert len(_files(tmp_path)) == 4  # the file, what is of the last three days, and what is not ours
    assert "audit-unrelated.log" in _files(tmp_path)


def test_backups_are_compressed(tmp_path: Path) -> None:
    _write(tmp_path, times=2, compress=True)
    backup = next(path for path in tmp_path.iterdir() if path.suffix == ".gz")
    assert gzip.decompress(backup.read_bytes()) == LINE


def test_an_existing_log_is_appended_to(tmp_path: Path) -> None:
    (tmp_path / "audit.log").write_bytes(b"before\n")
    log = LogFile(AuditLogSettings(path=str(tmp_path / "audit.log")), cast("Clock", Calendar()))
    log.write(b"after\n")
    log.close()
    assert (tmp_path / "audit.log").read_bytes() == b"before\nafter\n"


def test_half_a_line_of_a_killed_server_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / "audit.log").write_bytes(b'{"whole":1}\n{"half')
    log = LogFile(AuditLogSettings(path=str(tmp_path / "audit.log")), cast("Clock", Calendar()))
    log.write(b'{"next":1}\n')
    log.close()
    assert (tmp_path / "audit.log").read_bytes().splitlines() == [b'{"whole":1}', b'{"half', b'{"next":1}']
