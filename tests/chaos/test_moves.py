"""A short campaign of what moves rows beside the lineage."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from chaos.movers import Places
from chaos.moves import MOVERS, done, drawn, mixed

SEED = 1


@pytest.mark.campaign
@pytest.mark.parametrize("name", MOVERS)
def test_what_a_killed_mover_has_left_is_moved_once(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("SPARK_REMOTE", "BLOGDATA_SPARK_MODE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
        monkeypatch.delenv(variable, raising=False)
    places = Places(
        folder=tmp_path / "mover",
        database=lambda: request.getfixturevalue("database"),
        spark=lambda: request.getfixturevalue("spark_server").url,
    )
    mover = MOVERS[name].made(places)
    rounds = [done(mover, tmp_path / str(number), drawn(SEED, number, name)) for number in range(3)]
    assert [one.problems for one in rounds] == [[], [], []]
    assert sum(len(one.hits) for one in rounds) > 0


def test_kills_of_movers_are_drawn_from_the_seed() -> None:
    kills, again, others = (
        [kill for name in MOVERS for number in range(50) for kill in drawn(seed, number, name)]
        for seed in (SEED, SEED, SEED + 1)
    )
    assert kills == again
    assert kills != others
    assert {kill.writer for kill in kills} == MOVERS.keys()
    assert all(kill.delay is not None and kill.delay <= MOVERS[kill.writer].longest for kill in kills)


def test_a_part_that_is_neither_old_nor_new_is_a_mixture() -> None:
    before, wanted = Counter([("a", 1), ("b", 1)]), Counter([("a", 2), ("b", 1)])
    assert mixed(before, before, wanted) == mixed(wanted, before, wanted) == []
    assert mixed(before | wanted, before, wanted) == ["a"]
