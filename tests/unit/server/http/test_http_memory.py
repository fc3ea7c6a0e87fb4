"""Memory after many connections: it is returned to the system after a burst, and not more often than needed."""

from __future__ import annotations

from ostinato.server.http import memory
from ostinato.server.http.memory import MIN_CLOSED, MIN_INTERVAL, TrimSchedule
from ostinato.world import Simulation


def test_memory_is_trimmed_after_a_burst_of_connections_at_a_bounded_rate() -> None:
    simulation = Simulation(seed=1)

    async def main() -> None:
        trims = TrimSchedule(simulation.clock)

        def is_due_after(connections: int) -> bool:
            for _ in range(connections):
                trims.closed()
            return trims.is_due()

        await simulation.clock.sleep(1)
        assert not is_due_after(MIN_CLOSED - 1)
        assert is_due_after(1)
        assert not is_due_after(MIN_CLOSED)  # too soon
        await simulation.clock.sleep(MIN_INTERVAL)
        assert is_due_after(0)
        assert not is_due_after(0)

    simulation.run(main())


def test_trimming_is_harmless_with_any_c_library() -> None:
    memory.trim()
