from collections import Counter
from pathlib import Path

import pytest

from blogdata.deliver import ordered_delivery
from blogdata.deliver.fifo_orderer import Fifo
from blogdata.deliver.ordered_delivery import deliver
from blogdata.deliver.outbox import MOST_TRIES
from patterns.partner_feed import PartnerFaults, by_key, expected, outbox, partner, received, rows, target

LATER = "9999"


def test_retries_keep_the_order(tmp_path: Path) -> None:
    taken, file = rows(12, 3), tmp_path / "partner.jsonl"
    box = outbox(tmp_path, taken)
    with partner(file, PartnerFaults.every(0.05), seed=5) as server, target(server) as there:
        assert deliver(Fifo(box.due(before=LATER)), box, there) == len(taken)
    found = received(file)
    assert by_key(found) == expected(taken)
    times = [one["payload"]["at"] for one in found]
    assert times == sorted(times)


def test_a_record_that_is_never_taken_ends_the_line(tmp_path: Path) -> None:
    """The records behind it wait for the next run."""
    fifo = Fifo(outbox(tmp_path, rows(40, 1)).due(before=LATER))
    sent = Counter[str]()
    while found := fifo.next():
        sent.update(one.key for one in found)
        fifo.settle(found, {index for index, one in enumerate(found) if len(sent) == 3})
    assert [*sent.values()] == [1, 1, MOST_TRIES]


@pytest.mark.parametrize(("naive", "kept"), [(True, 2), (False, 1)], ids=["naive", "by-number"])
def test_sending_and_acknowledging_is_not_exactly_once(
    naive: bool, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why records are numbered durably: what has no answer is sent again, and is there twice unless recognized."""
    monkeypatch.setattr(ordered_delivery, "PAUSES", ())
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, rows(1, 1)[:1])
    with partner(file, PartnerFaults(late_error=1.0), naive=naive) as server, target(server) as there:
        for _ in range(2):
            with pytest.raises(Exception, match="500"):
                deliver(Fifo(box.due(before=LATER)), box, there)
    assert len(received(file)) == kept
