"""Elector: acquires and renews a lease, by client-go's algorithm with its gaps closed.

- Clocks of different machines are not compared. A candidate records when it first observed the current state of the
  lease; it may take the lease only after that state has lasted for the lease duration. A new process therefore waits
  for a whole lease duration.
- The holder renews by one conditional update; if that fails, it reads the lease first.
- Each renewal extends the fence. When the fence is reached, or another holder is observed, leadership is lost for good.
- A missing lease may have been deleted while another process leads. The process that creates a lease holds it, but
  leads only after a lease duration, unless it leads already.
- A lease is released only by the leader, after its work has stopped, and only if the lease still names it as holder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ostinato.api.errors import APIError, Forbidden, NotFound
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager.election.fence import Fence
from ostinato.manager.election.lease import LeaseLock, Record
from ostinato.manager.election.settings import JITTER, LeaderElection
from ostinato.world import World

_logger = logging.getLogger("ostinato.manager")

NO_HOLDER = Record()


class LeadershipLost(Exception):  # noqa: N818
    """This process has lost leadership and must end: another process may lead now."""


class Elector:
    def __init__(
        self,
        lock: LeaseLock,
        options: LeaderElection,
        fence: Fence,
        world: World,
        *,
        new_leader: Callable[[str], object] | None = None,
    ) -> None:
        """`new_leader`: called with each newly observed holder, including this candidate."""
        if not options.identity:
            raise ValueError(f"leader election {options.name}: identity must not be empty")
        self.lock = lock
        self.slow_paths = 0  # renewals that had to read the lease
        self._options = options
        self._fence = fence
        self._clock = world.clock
        self._rng = world.rng.fork(f"leader election {options.identity}")
        self._new_leader = new_leader or (lambda _: None)
        self._reported = ""
        self._observed = NO_HOLDER
        self._observed_at = float("-inf")  # when the current state of the lease was first observed
        self._sent_at = float("-inf")  # when the last successful renewal was sent
        self._not_before = float("-inf")  # until when another process may lead under a deleted lease
        self._leads = False

    @property
    def leader(self) -> str:
        """The holder that was last observed; "" if there is none."""
        return self._observed.holder

    @property
    def is_leader(self) -> bool:
        """Whether this candidate was last observed as the holder. Whether it may write is up to the fence."""
        return self._observed.holder == self._options.identity

    def check(self, tolerance: float = 0.0) -> None:
        """Health check: raises if this candidate still leads long after its lease expired."""
        late = self._clock.monotonic() - self._observed_at
        if self.is_leader and late > self._options.lease_duration + tolerance:
            raise LeadershipLost(f"failed election to renew leadership on lease {self._options.name}")

    async def acquire(self) -> None:
        """Wait until this candidate leads."""
        _logger.info("attempting to acquire leader lease lease=%s", self.lock)
        while not await self.try_acquire():
            period = self._options.retry_period
            # A holder must renew in time; the jitter is for spreading candidates.
            await self._clock.sleep(period if self.is_leader else self._rng.jitter(period, JITTER))

    async def try_acquire(self) -> bool:
        """Attempt once to acquire the lease. Returns whether this candidate leads; it may hold the lease before."""
        held = await self._attempt()
        until = self._sent_at + self._options.renew_deadline
        if not held or not self._not_before <= self._clock.monotonic() <= until:
            return False
        self._leads = True
        self._fence.extend(until)
        _logger.info("successfully acquired lease lease=%s", self.lock)
        return True

    def observe(self, lease: Lease) -> None:
        """Take note of the lease as it was read elsewhere, while this candidate does not hold it."""
        self.lock.observe(lease)
        record = Record.of(lease.spec)
        if record != self._observed:
            self._observe(record)

    @property
    def is_free(self) -> bool:
        """Whether the lease, as it was last observed, may be taken: it has no holder, or expired."""
        return not self._observed.holder or self._has_expired(self._clock.monotonic())

    async def renew(self) -> None:
        """Renew the lease until leadership is lost. Always raises `LeadershipLost`."""
        options = self._options
        try:
            while True:
                until = self._sent_at + options.renew_deadline
                try:
                    async with self._clock.deadline(until):
                        await self._clock.sleep(options.retry_period)
                        while not await self._attempt():
                            self._check_holder()
                            await self._clock.sleep(options.retry_period)
                except TimeoutError:
                    why = f"could not be renewed within {options.renew_deadline:g} s"
                    raise LeadershipLost(f"leader election lost: lease {self.lock} {why}") from None
                self._fence.extend(self._sent_at + options.renew_deadline)
        except LeadershipLost as error:
            self._leads = False
            self._fence.close()
            _logger.error("%s", error)
            raise

    async def release(self) -> bool:
        """Release the lease after the work has stopped. Returns whether it was released; after a failure it expires."""
        led = self._leads
        self._leads = False
        self._fence.close()
        if not led:
            return False
        try:
            async with self._clock.timeout(self._options.renew_deadline):
                return await self._release()
        except NotFound:
            _logger.info("lease not found, nothing to release lease=%s", self.lock)
        except (APIError, TransportError, TimeoutError) as error:
            _logger.error("failed to release lease lease=%s error=%s", self.lock, error)
        return False

    async def _release(self) -> bool:
        current = await self.lock.read()
        if current.holder != self._options.identity:
            return False
        now = self._clock.now()
        released = Record(seconds=1, acquired=now, renewed=now, transitions=current.transitions)
        await self.lock.update(released)
        self._observe(released)
        return True

    def _check_holder(self) -> None:
        if self._observed.holder and not self.is_leader:
            raise LeadershipLost(f"leader election lost: lease {self.lock} is held by {self._observed.holder}")

    async def _attempt(self) -> bool:
        """Try to acquire or renew the lease. Returns whether this candidate holds it."""
        try:
            return await self._acquire_or_renew()
        except (APIError, TransportError) as error:
            forbidden = isinstance(error, Forbidden)
            remedy = "; `ostinato manifests FILE --leader-election NAME` writes the role that it needs"
            _logger.warning(
                "failed to acquire or renew lease lease=%s error=%s%s", self.lock, error, remedy if forbidden else ""
            )
            return False
        finally:
            if self._observed.holder != self._reported:
                self._reported = self._observed.holder
                self._new_leader(self._reported)

    async def _acquire_or_renew(self) -> bool:
        if self.is_leader and not self._has_expired(self._clock.monotonic()):
            with suppress(APIError, TransportError):  # the slow path reports the error
                await self._write(self._renewed(self._observed))
                return True
        asked_at = self._clock.monotonic()
        try:
            found = await self.lock.read()
        except NotFound:
            await self._create(asked_at)
            return True
        if found != self._observed:
            self._observe(found)
        if self.is_leader:
            self.slow_paths += 1
            await self._write(self._renewed(found))
            return True
        if found.holder and not self._has_expired(asked_at):
            _logger.debug(
                "lease is held by another and has not yet expired lease=%s holder=%s", self.lock, found.holder
            )
            return False
        await self._write(self._mine(transitions=found.transitions + 1))
        self._not_before = float("-inf")  # the previous leader has stopped by now
        return True

    async def _create(self, now: float) -> None:
        if not self._leads and not self._options.trust_absence:
            # Set before sending: the answer may be lost, and the lease observed later as this candidate's own.
            self._not_before = now + self._options.lease_duration
        await self._write(self._mine(transitions=0), create=True)
        if self._not_before > now:
            _logger.info(
                "created a lease; waiting, a leader under a deleted lease may still be active lease=%s seconds=%d",
                self.lock,
                self._options.lease_duration,
            )

    async def _write(self, record: Record, *, create: bool = False) -> None:
        sent_at = self._clock.monotonic()
        await (self.lock.create(record) if create else self.lock.update(record))
        self._sent_at = sent_at
        self._observe(record)

    def _mine(self, transitions: int) -> Record:
        now = self._clock.now()
        return Record(
            holder=self._options.identity,
            seconds=int(self._options.lease_duration),
            acquired=now,
            renewed=now,
            transitions=transitions,
        )

    def _renewed(self, record: Record) -> Record:
        return msgspec.structs.replace(record, seconds=int(self._options.lease_duration), renewed=self._clock.now())

    def _observe(self, record: Record) -> None:
        self._observed = record
        self._observed_at = self._clock.monotonic()

    def _has_expired(self, now: float) -> bool:
        return self._observed_at + self._observed.seconds < now
