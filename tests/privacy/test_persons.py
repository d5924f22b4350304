"""Who is forgotten is found from what was given, and never somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.lines import Bounds
from blogdata.privacy.persons import Match, SharedValue, find, landed_files

BOB = {"id": "user-bob", "login": "bob", "email": "bob@mail.example"}
RENAMED = {**BOB, "login": "robert"}
ANN = {"id": "user-ann", "login": "ann", "email": "ann@mail.example"}


def visit(user: str | None, visit_id: str, **more: Any) -> dict[str, Any]:
    return {"user_id": user, "visit_id": visit_id, "context": {"user": {"ip": "9.9.9.9", **more}}}


VISITS = [
    visit("user-bob", "visit-1"),
    visit(None, "visit-1"),
    visit("user-ann", "visit-2"),
    visit(None, "visit-3", login="bob"),
]


def land(landing: Path, users: list[Any], visits: list[Any]) -> None:
    for name, rows in (("users/date=2026-01-05/users.json", users), ("visits/date=2026-01-05/hour=10/a.json", visits)):
        file = landing / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))


def found(landing: Path, *, shared_stays: bool = False, given: dict[str, str] | None = None, **more: str) -> Match:
    files, unreadable = landed_files(landing, Bounds())
    assert unreadable == []
    asked = Identifiers(**{kind: frozenset(value.split()) for kind, value in {**(given or {}), **more}.items()})
    return find(landing, files, asked, shared_stays=shared_stays)


@pytest.mark.parametrize(
    "given", [{"user_ids": "user-bob"}, {"logins": "bob"}, {"emails": "bob@mail.example"}, {"visit_ids": "visit-1"}]
)
def test_all_values_of_a_user_are_found_from_one(tmp_path: Path, given: dict[str, str]) -> None:
    land(tmp_path, [BOB, RENAMED, ANN], VISITS)
    assert found(tmp_path, given=given).persons == Identifiers(
        user_ids=frozenset({"user-bob"}),
        logins=frozenset({"bob", "robert"}),
        emails=frozenset({"bob@mail.example"}),
        visit_ids=frozenset({"visit-1"}),
    )


def test_values_in_lines_that_cannot_be_read_are_found(tmp_path: Path) -> None:
    land(tmp_path, [BOB], ['{"user_id": "user-b\\u006fb", "visit_id": "visit-9", "page": "/cu\n'])
    assert found(tmp_path, user_ids="user-bob").persons.visit_ids == {"visit-9"}


def test_an_address_leads_to_nobody(tmp_path: Path) -> None:
    land(tmp_path, [BOB, ANN], VISITS)
    given = Identifiers(addresses=frozenset({"9.9.9.9"}))
    assert found(tmp_path, addresses="9.9.9.9").persons == given
    assert found(tmp_path, user_ids="user-bob").persons.addresses == frozenset()


def test_a_login_that_two_users_have_had_does_not_widen(tmp_path: Path) -> None:
    land(tmp_path, [BOB, {**ANN, "login": "bob"}, ANN], VISITS)
    with pytest.raises(SharedValue, match=r"bob \(--login\), of user-ann, user-bob"):
        found(tmp_path, logins="bob")
    with pytest.raises(SharedValue, match=r"bob \(--login\), of user-ann"):
        found(tmp_path, user_ids="user-bob")
    assert found(tmp_path, user_ids="user-bob user-ann").persons.logins == {"bob", "ann"}
    kept = found(tmp_path, user_ids="user-bob", shared_stays=True)
    assert kept.persons.logins == frozenset()
    assert kept.shared == {"bob"}


def test_a_value_that_no_line_has_is_named(tmp_path: Path) -> None:
    land(tmp_path, [BOB], VISITS)
    assert found(tmp_path, user_ids="user-bob nobody", logins="no-one").unknown == {"nobody", "no-one"}
