import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.deliver import ordered_delivery
from blogdata.deliver.bin_pack_orderer import BinPacker
from blogdata.deliver.ordered_delivery import deliver
from blogdata.deliver.outbox import MOST_TRIES, Delivery
from blogdata.errors import TransientError
from patterns.partner_feed import Partner, PartnerFaults, by_key, expected, outbox, partner, received, rows, target

LATER = "9999"


def record(key: str, sequence: int) -> Delivery:
    return Delivery(id=f"{key}/{sequence}", key=key, sequence=sequence, payload="{}")


@given(
    st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.integers(1, 12), max_size=20),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
    st.sampled_from([0.0, 0.3]),
)
def test_bins_hold_one_record_per_key(counts: dict[str, int], size: int, chance: object, failing: float) -> None:
    records = [record(key, number) for key, count in counts.items() for number in range(1, count + 1)]
    packer, taken, bins = BinPacker(records, size=size), Counter[str](), 0
    while found := packer.next():
        assert len(found) <= size
        assert len({one.key for one in found}) == len(found)
        assert all(one.sequence == taken[one.key] + 1 for one in found)
        failed = {index for index in range(len(found)) if chance.random() < failing}  # type: ignore[attr-defined]
        taken.update(one.key for index, one in enumerate(found) if index not in failed)
        packer.settle(found, failed)
        bins += 1
    assert taken == Counter(counts)
    if not failing:
        # The minimum number of bins.
        assert bins == max(max(counts.values(), default=0), math.ceil(len(records) / size))


def test_a_record_that_is_never_taken_holds_its_key_only() -> None:
    records = [record(key, number) for key in ("bad", "good", "other") for number in (1, 2, 3)]
    packer, tried, taken = BinPacker(records, size=2), Counter[str](), list[str]()
    while found := packer.next():
        tried.update(one.id for one in found)
        assert max(tried.values()) <= MOST_TRIES, "the next run retries it"
        taken += [one.id for one in found if one.key != "bad"]
        packer.settle(found, {index for index, one in enumerate(found) if one.key == "bad"})
    assert sorted(taken) == [one.id for one in records if one.key != "bad"]
    assert (tried["bad/1"], tried["bad/2"]) == (MOST_TRIES, 0)


def test_bulk_requests_without_bins_break_the_order(tmp_path: Path) -> None:
    """Why bins are needed: a batch in the order of time, with its failed records sent again."""
    taken, file = rows(10, 5), tmp_path / "partner.jsonl"
    waiting = list(outbox(tmp_path, taken).due(before=LATER))
    with partner(file, PartnerFaults(partial=0.3), seed=7) as server, target(server) as there:
        while waiting:
            batch = waiting[:20]
            failed = there.send(batch)
            waiting = [batch[index] for index in failed] + waiting[20:]
    found = by_key(received(file))
    assert {key: sorted(found[key]) for key in found} == expected(taken)
    assert found != expected(taken)


@pytest.mark.parametrize("answer", [[], {"failed": [{"code": "internal"}]}, {"failed": [{"index": 3}]}])
def test_an_answer_that_makes_no_sense_settles_nothing(
    answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows which records were accepted: assuming all loses records, assuming none sends some twice."""
    monkeypatch.setattr(ordered_delivery, "PAUSES", ())
    monkeypatch.setattr(Partner, "take", lambda *_: answer)
    box = outbox(tmp_path, rows(3, 1))
    packer = BinPacker(box.due(before=LATER), size=3)
    with (
        partner(tmp_path / "partner.jsonl") as server,
        target(server) as there,
        pytest.raises(TransientError, match="the partner gave an answer"),
    ):
        deliver(packer, box, there)
    (line,) = box.lines()
    assert line.states == {"sending": 3, "waiting": 4}
