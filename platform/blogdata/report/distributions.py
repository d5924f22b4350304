"""The distributions that the Offline Observer has found: the newest period of each profiled column beside the usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from blogdata.patterns.quality.drift import QUANTILES, Profile, comparable, is_number, pooled
from blogdata.patterns.quality.offline_observer import Observation, of_newest_period
from blogdata.publish.contract import Contract

SHOWN = 6
"""How many values of a category are shown."""
_PROBABILITIES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A value of a category, or a quantile of a number.

    Args:
        name: The value, or the quantile as text.
        found: Its share of the rows, 0 to 1; of a number the value of the quantile.
        usual: The same over comparable periods before; None without any.
        width: `found` relative to the largest figure of the column, 0 to 1.
        usual_width: The same of `usual`.
    """

    name: str
    found: float
    usual: float | None
    width: float
    usual_width: float


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A profiled column of a dataset in the newest period that was looked at.

    Args:
        dataset: Name as `layer.table`.
        column: The column.
        period: Key of the period; "" for a table that is written whole.
        rows: Rows of the period.
        is_share: Whether the figures are shares; otherwise they are values of a number.
        compared: Number of periods that it is compared with.
        drifted: Whether it differs from them more than chance and habit explain.
        parts: The most frequent values, or some quantiles.
    """

    dataset: str
    column: str
    period: str
    rows: int
    is_share: bool
    compared: int
    drifted: bool
    parts: Sequence[Part]


def distributions(contract: Contract, observed: Sequence[Observation]) -> Iterator[Distribution]:
    """Compare the newest profile of a dataset with earlier ones.

    Args:
        contract: Its contract.
        observed: Its observations, of each period the newest.
    """
    newest = of_newest_period(observed)
    if newest is None:
        return
    past = comparable(newest.profile, [one.profile for one in observed if one is not newest], contract.grain)
    drifted = {drift.column for drift in newest.drifts}
    for column in contract.profiled:
        number = is_number(contract, column)
        figures = _quantiles(newest.profile, past, column) if number else _shares(newest.profile, past, column)
        most = max((max(found, usual or 0.0) for _, found, usual in figures), default=0.0) or 1.0
        if figures:
            yield Distribution(
                dataset=contract.dataset,
                column=column,
                period=newest.profile.period,
                rows=newest.profile.rows,
                is_share=not number,
                compared=len(past),
                drifted=column in drifted,
                parts=[
                    Part(name=name, found=found, usual=usual, width=found / most, usual_width=(usual or 0.0) / most)
                    for name, found, usual in figures
                ],
            )


def _shares(newest: Profile, past: Sequence[Profile], column: str) -> list[tuple[str, float, float | None]]:
    here, before = pooled([newest], column), pooled(past, column)
    rows, rows_before = sum(here.values()), sum(before.values())
    if not rows:
        return []
    shares = [
        (name, here.get(name, 0) / rows, before.get(name, 0) / rows_before if rows_before else None)
        for name in here | before
    ]
    return sorted(shares, key=lambda each: (-max(each[1], each[2] or 0.0), each[0]))[:SHOWN]


def _quantiles(newest: Profile, past: Sequence[Profile], column: str) -> list[tuple[str, float, float | None]]:
    here = newest.columns[column].quantiles if column in newest.columns else ()
    before = [one.columns[column].quantiles for one in past if column in one.columns and one.columns[column].quantiles]
    places = [QUANTILES.index(probability) for probability in _PROBABILITIES]
    return [
        (
            f"{QUANTILES[place]:.0%} are below",
            here[place],
            fmean(quantiles[place] for quantiles in before) if before else None,
        )
        for place in places
        if here
    ]
