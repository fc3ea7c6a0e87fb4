from __future__ import annotations

from pathlib import Path

from ostinato.metrics import process_families


def test_the_process_reports_cpu_time_memory_and_open_files(tmp_path: Path) -> None:
    found = {family.name: family.samples[0].value for family in process_families()}
    assert found["process_cpu_seconds_total"] > 0
    assert found["process_max_fds"] > 0
    if Path("/proc/self/stat").exists():
        assert found["process_resident_memory_bytes"] > 1e6
        assert found["process_start_time_seconds"] > 1.6e9
        assert found["process_open_fds"] > 2
    assert {family.name for family in process_families(tmp_path)} == {"process_cpu_seconds_total", "process_max_fds"}
