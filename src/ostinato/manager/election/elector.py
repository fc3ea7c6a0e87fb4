"""Elector: one candidate's part in an election, the algorithm of client-go with its gaps closed.

- Nobody compares clocks. A candidate remembers what the lease said and since when *it* has seen just that; only when
  that has lasted for as long as the lease is valid may it be taken. A new process therefore waits for a whole lease.
- The holder renews with one guarded write; where that fails it reads the lease first.
- Renewals move the fence. When it is reached, or another holder is seen, leadership is lost, and nothing regains it.
- A lease that is not there may have been deleted under a leader that has not noticed. Who creates one holds it, but
  leads only after the lease's time, unless it leads already.
- A lease is released only by who leads, after its work has stopped, and only if the lease, just read, says so too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ostinato.api.errors import APIError, Forbidden, NotFound
from ostinato.client.transport.protocol import TransportError
from ostinato.manager.election.fence import Fence
from ostinato.manager.election.lease import LeaseLock, Record
from ostinato.manager.election.settings import JITTER, LeaderElection
from ostinato.world import World

_logger = logging.getLogger("ostinato.manager")

NOBODY = Record()


class LeadershipLost(Exception):  # noqa: N818 - what happened, in the past tense
    """This process led and does so no longer. It must end: work that it believes to be its own is another's now."""


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
        """`new_leader` is told each holder that is seen for the first time or again, this candidate included."""
        if not options.identity:
            raise ValueError(f"leader election {options.name}: a candidate needs an identity")
        self.lock = lock
        self.slow_paths = 0  # renewals for which the lease had to be read
        self._options = options
        self._fence = fence
        self._clock = world.clock
        self._rng = world.rng.fork(f"leader election {options.identity}")
        self._new_leader = new_leader or (lambda _: None)
        self._reported = ""
        self._observed = NOBODY
        self._observed_at = float("-inf")  # since when the lease has been seen to be as it is
        self._sent_at = float("-inf")  # when the latest renewal that succeeded was sent
        self._not_before = float("-inf")  # until when another may lead under a lease that was deleted
        self._leads = False

    @property
    def leader(self) -> str:
        """The holder last seen, "" if there is none. It may have changed since."""
        return self._observed.holder

    @property
    def is_leader(self) -> bool:
        """Whether this candidate was last seen to hold the lease. Whether it may write is for the fence to say."""
        return self._observed.holder == self._options.identity

    def check(self, tolerance: float = 0.0) -> None:
        """For health: an error if this candidate should have given up long ago, and somehow has not."""
        late = self._clock.monotonic() - self._observed_at
        if self.is_leader and late > self._options.lease_duration + tolerance:
            raise LeadershipLost(f"failed election to renew leadership on lease {self._options.name}")

    async def acquire(self) -> None:
        """Return when this candidate leads."""
        _logger.info("attempting to acquire leader lease %s", self.lock)
        while True:
            held = await self._attempt()
            now = self._clock.monotonic()
            until = self._sent_at + self._options.renew_deadline
            if held and self._not_before <= now <= until:
                break
            period = self._options.retry_period
            # Who holds the lease already must keep it, without the long waits that are meant to spread candidates.
            await self._clock.sleep(period if held else self._rng.jitter(period, JITTER))
        self._leads = True
        self._fence.extend(until)
        _logger.info("successfully acquired lease %s", self.lock)

    async def renew(self) -> None:
        """Keep the lease. Ends with `LeadershipLost`."""
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
        """Give the lease back, after the work has stopped: whether that was done. Failures are left to time."""
        led = self._leads
        self._leads = False
        self._fence.close()
        if not led:
            return False
        try:
            async with self._clock.timeout(self._options.renew_deadline):
                return await self._release()
        except NotFound:
            _logger.info("lease %s is not there to be released", self.lock)
        except (APIError, TransportError, TimeoutError) as error:
            _logger.error("failed to release lease %s: %s", self.lock, error)
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
        """Try to get or to keep the lease: whether this candidate holds it now."""
        try:
            return await self._acquire_or_renew()
        except (APIError, TransportError) as error:
            forbidden = isinstance(error, Forbidden)
            remedy = "; `ostinato manifests FILE --leader-election NAME` writes the role that it needs"
            _logger.warning("lease %s: %s%s", self.lock, error, remedy if forbidden else "")
            return False
        finally:
            if self._observed.holder != self._reported:
                self._reported = self._observed.holder
                self._new_leader(self._reported)

    async def _acquire_or_renew(self) -> bool:
        if self.is_leader and not self._has_expired(self._clock.monotonic()):
            with suppress(APIError, TransportError):  # the slow path says why
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
            _logger.debug("lease %s is held by %s and has not yet expired", self.lock, found.holder)
            return False
        await self._write(self._mine(transitions=found.transitions + 1))
        self._not_before = float("-inf")  # whoever led before has stopped, by itself or in time
        return True

    async def _create(self, now: float) -> None:
        if not self._leads and not self._options.trust_absence:
            # Said before it is sent: the answer may be lost, and the lease found later as this candidate's own.
            self._not_before = now + self._options.lease_duration
        await self._write(self._mine(transitions=0), create=True)
        if self._not_before > now:
            why = "there was none, and who led under one that was deleted may not have noticed"
            seconds = self._options.lease_duration
            _logger.info("lease %s is taken, and leading begins in %d s: %s", self.lock, seconds, why)

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
