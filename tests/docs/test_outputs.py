"""What a page shows is compared with what was printed: volatile values may differ, other text may not."""

from __future__ import annotations

import pytest

from tests.docs.outputs import same


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("deployment.apps/tea   2/2   2   3s", "deployment.apps/tea  2/2  2  1m14s"),
        ("ready at https://127.0.0.1:6443", "ready at https://127.0.0.1:40123"),
        ("pod/web-7d4b9c6f8-x2k9p created", "pod/web-55c8d7b9f4-qq2zl created"),
        ("kubeconfig: /tmp/ostinato-a/x", "kubeconfig: /var/tmp/page/x"),
        ("valid until 2027-02-14 08:12 UTC", "valid until 2028-01-01 23:59 UTC"),
        ("Feed.run (reflector/feed.py:108)", "Feed.run (reflector/feed.py:1109)"),
        ("a\n...\nz", "a\nb\nc\nz"),
        ("a\n…", "a"),
        ("3 passed in 0.05s", "3 passed in 1.20s"),
        ("pod/web met", 'I1119 04:10:49.159111      28 reflector.go:664] "Warning: watch ended"\npod/web met'),
    ],
)
def test_volatile_values_may_differ(shown: str, printed: str) -> None:
    assert same(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("deployment.apps/tea   2/2", "deployment.apps/tea   1/2"),
        ("created", "configured"),
        ("feed.py:108", "fifo.py:108"),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("a.b", "axb"),
        ("3 passed in 0.05s", "2 passed in 0.05s"),
    ],
)
def test_other_text_may_not(shown: str, printed: str) -> None:
    assert not same(shown, printed)
