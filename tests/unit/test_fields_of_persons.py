"""The fields by which landed lines name persons are those that the contracts say single somebody out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pytest

from blogdata.contract.column_types import Field, Struct
from blogdata.contract.contract import Contract
from blogdata.landing.landed_persons import FIELDS, OF_USERS, Identifiers
from quality.contracts import CONTRACTS, landed

ANYTHING = {"referral"}
"""A text that may have any value in it: a visit is known by its other fields."""


def leaves(fields: Iterable[Field]) -> Iterator[str]:
    for field in fields:
        yield from leaves(field.type.fields) if isinstance(field.type, Struct) else [field.name]


@pytest.mark.parametrize(
    ("fields", "contract", "known"),
    [
        (landed.VISIT, CONTRACTS["silver.visits"], FIELDS),
        (landed.USER, CONTRACTS["bronze.users"], OF_USERS),
        (landed.AD, CONTRACTS["silver.ads"], FIELDS),
    ],
    ids=["visits", "users", "ads"],
)
def test_whatever_singles_somebody_out_is_known(
    fields: Iterable[Field], contract: Contract, known: Mapping[str, str]
) -> None:
    columns = {column.name for column in contract.columns if column.singles_out}
    named = columns.intersection(leaves(fields)) - ANYTHING
    assert named
    assert named <= known.keys()
    assert {known[name] for name in named} <= Identifiers().by_kind().keys()
