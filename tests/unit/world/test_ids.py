from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.world import Ids, Rng
from ostinato.world.ids import hash_text

makers = pytest.mark.parametrize("ids", [Ids.real(), Ids.simulated(Rng(3))], ids=["real", "simulated"])


@makers
def test_a_uid_is_a_canonical_version_4_uuid(ids: Ids) -> None:
    for _ in range(100):
        uid = ids.uid()
        parsed = uuid.UUID(uid)
        assert str(parsed) == uid
        assert parsed.version == 4
        assert parsed.variant == uuid.RFC_4122


@given(st.binary(min_size=16, max_size=16))
def test_a_uid_of_given_entropy_is_the_one_that_the_standard_library_makes(entropy: bytes) -> None:
    assert Ids(lambda _: entropy).uid() == str(uuid.UUID(bytes=entropy, version=4))


@makers
def test_uids_do_not_repeat(ids: Ids) -> None:
    assert len({ids.uid() for _ in range(1000)}) == 1000


def test_uids_do_not_repeat_between_threads() -> None:
    ids = Ids.real()
    uids: list[list[str]] = [[] for _ in range(8)]  # of each thread

    def work(mine: list[str]) -> None:
        mine.extend(ids.uid() for _ in range(2000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in uids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set().union(*uids)) == 8 * 2000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_repeat_the_uids_of_its_parent() -> None:
    program = """if True:
        import os
        from ostinato.world import Ids
        ids = Ids.real()
        ids.uid()
        os.fork()
        os.write(1, "".join(ids.uid() + "\\n" for _ in range(50)).encode())
    """
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert len(printed) == len(set(printed)) == 100


@makers
def test_a_suffix_has_five_characters_of_the_alphabet_of_kubernetes(ids: Ids) -> None:
    for _ in range(100):
        assert re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", ids.suffix())


@makers
@pytest.mark.parametrize("length", [0, 1, 10, 63])
def test_a_suffix_has_the_length_asked_for(ids: Ids, length: int) -> None:
    assert len(ids.suffix(length)) == length


def test_the_characters_of_a_suffix_are_equally_likely() -> None:
    counts = Counter(Ids.simulated(Rng(0)).suffix(27_000))
    assert len(counts) == 27
    assert all(800 < count < 1200 for count in counts.values())


@makers
def test_a_token_has_the_size_asked_for_and_does_not_repeat(ids: Ids) -> None:
    assert len(ids.token(24)) == 24
    assert ids.token() != ids.token()


@makers
def test_a_negative_size_is_an_error(ids: Ids) -> None:
    with pytest.raises(ValueError, match=r"suffix\(\) length is -1"):
        ids.suffix(-1)
    with pytest.raises(ValueError, match=r"token\(\) size is -1"):
        ids.token(-1)


def test_the_same_seed_gives_the_same_ids() -> None:
    first, second = Ids.simulated(Rng(3)), Ids.simulated(Rng(3))
    assert [first.uid(), first.suffix(), first.token()] == [second.uid(), second.suffix(), second.token()]


def test_a_hash_is_written_as_kubernetes_writes_it() -> None:
    assert hash_text(1234567890) == "56789bcdf4"
