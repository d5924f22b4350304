"""Dead-Letter in a stream: a correction is accepted after its hour is closed, and a better one is not missed."""

from __future__ import annotations

from collections import Counter

from assets.streams.live_visits import STREAM
from blogdata.patterns.error_management import dead_letter as replays
from blogdata.patterns.error_management.dead_letter import Correction
from lineage.conftest import Deploy
from lineage.deployment import event
from lineage.live import BRONZE, HOURS, VISITS, problems, tick
from lineage.live import published as left_out
from quality.contracts import CONTRACTS

FIRST, _, LAST = HOURS


def test_streamed_corrections_are_deduplicated_and_never_late(deploy: Deploy) -> None:
    made = deploy("live-corrections")
    made.land(FIRST, [event("09:05", "/a"), b"{", b"["])
    made.land(LAST, [event("11:05", "/b"), b'"'])
    tick(made, STREAM)
    letters = sorted(made.rows(BRONZE, "source_file", "source_offset", "reasons"))
    dead = [(file, offset) for file, offset, reasons in letters if reasons]

    def correct(*lines: bytes) -> None:
        corrections = [
            Correction(source_file=file, source_offset=offset, payload=line.decode())
            for (file, offset), line in zip(dead, lines, strict=False)
        ]
        replays.land_corrections(corrections, dead, made.landing, letters=CONTRACTS["bronze.dead_letters"])

    # New for its closed hour, already in the hour, and in the same batch as the line itself.
    correct(
        event("09:06", "/c"),
        event("09:05", "/a", user_id="corrected"),
        event("11:06", "/d", user_id="corrected"),
    )
    made.land(LAST, [event("11:06", "/d"), event("09:07", "/late")], name="zzz.json")
    tick(made, STREAM)
    published = [(page, f"user-{page}") for page in ("/a", "/b", "/c", "/d")]
    assert sorted(made.rows(VISITS, "page", "user_id")) == published
    apart = Counter({("2026-01-05T09", "conflict"): 1, ("2026-01-05T11", "conflict"): 1, ("2026-01-05T09", "late"): 1})
    assert left_out(made)[1] == apart

    # A better correction replaces the file but not the published row.
    correct(event("09:06", "/c", user_id="better"))
    assert len(list(made.landing.rglob("replay-*"))) == len(dead)
    tick(made)
    assert sorted(made.rows(VISITS, "page", "user_id")) == published
    assert left_out(made)[1] == apart + Counter({("2026-01-05T09", "conflict"): 1})
    assert problems(made) == []
