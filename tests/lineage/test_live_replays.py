"""What the command of a stream reads: each file once under its own name, by its bytes; corrections of dead letters.

Pattern: Dead-Letter, in a stream: a correction is accepted after its hour is closed, and a better one is not missed.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from assets.streams.live_visits import STREAM
from blogdata.cli.main import app
from blogdata.landing import dead_letter as replays
from blogdata.landing.dead_letter import Correction
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.live import BRONZE, HOURS, VISITS, problems, tick
from lineage.live import published as left_out
from quality.contracts import CONTRACTS

# The tests go on from each other: `make laws` has all of them, not campaigns alone.
pytestmark = pytest.mark.matrix(1)
FIRST, NAMED, LAST = HOURS
PUBLISHED = [(page, f"user-{page}") for page in ("/a", "/b", "/c", "/d")]
APART = Counter({("2026-01-05T09", "conflict"): 1, ("2026-01-05T11", "conflict"): 1, ("2026-01-05T09", "late"): 1})
FILES: dict[str, Callable[[bytes], bytes]] = {
    "a[b].json": bytes,
    "ab.json": bytes,
    "{p,q}.json": gzip.compress,
    "p.json": bytes,
    "x*.json.gz": bytes,
    "2026-01-05T10:00:00.json": lzma.compress,
    "back\\slash %25 é+.json": bytes,
    "marked.json": lambda text: b"\xef\xbb\xbf" + text,
    "part.json/part-0000.json": bytes,
    "_hidden=1.json": bytes,
    "only in batch.json.bz2": bytes,
    "access.log.xz": bytes,
}
STREAMED = [name for name in FILES if name.endswith((".json", ".json.gz")) and not name.startswith("_")]


@pytest.fixture(scope="module")
def made(deploy: Deploy) -> Deployment:
    """Files of odd names in a zone of an odd name, and lines that are no event, streamed; the tests go on from it."""
    created = deploy("live-landed")
    made = Deployment(settings=replace(created.settings, landing=created.settings.home / "zone [1] {2}*?" / "landing"))
    for number, (name, packed) in enumerate(FILES.items()):
        file = made.folder(NAMED) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (event(f"10:{minute:02}", f"{number}") + b"\n" for minute in range(number + 1))
        file.write_bytes(packed(b"".join(lines)))
    os.mkfifo(made.folder(NAMED) / "pipe.json")
    made.land(FIRST, [event("09:05", "/a"), b"{", b"["])
    made.land(LAST, [event("11:05", "/b"), b'"'])
    environment = {"BLOGDATA_HOME": str(made.settings.home), "BLOGDATA_LANDING": str(made.landing)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signal, "signal", lambda *_: None)
        ended = CliRunner().invoke(app, ["stream", VISITS, "--once", "--json"], env=environment)
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout) == {name: len(made.rows(name, "source_file")) for name in (BRONZE, VISITS)}
    return made


def test_each_file_is_streamed_once_under_its_own_name(made: Deployment) -> None:
    place = f"visits/date={NAMED[:10]}/hour={NAMED[11:]}"
    found = Counter(file for file in made.rows(BRONZE, "source_file") if file.startswith(place))
    assert found == {f"{place}/{name}": at + 1 for at, name in enumerate(FILES) if name in STREAMED}
    assert problems(made) == []


def test_streamed_corrections_are_deduplicated_and_never_late(made: Deployment) -> None:
    corrected = {"user_id": "corrected"}
    # New for its closed hour, already in the hour, and in the same batch as the line itself.
    correct(made, event("09:06", "/c"), event("09:05", "/a", **corrected), event("11:06", "/d", **corrected))
    made.land(LAST, [event("11:06", "/d"), event("09:07", "/late")], name="zzz.json")
    tick(made, STREAM)
    assert pages(made) == PUBLISHED
    assert left_out(made)[1] == APART
    assert problems(made) == []


@pytest.mark.campaign
def test_a_better_correction_replaces_the_file_but_not_the_published_row(made: Deployment) -> None:
    correct(made, event("09:06", "/c", user_id="better"))
    assert len(list(made.landing.rglob("replay-*"))) == 3
    tick(made, STREAM)
    assert pages(made) == PUBLISHED
    assert left_out(made)[1] == APART + Counter({("2026-01-05T09", "conflict"): 1})
    assert problems(made) == []


def correct(made: Deployment, *lines: bytes) -> None:
    """Land corrections of the first dead letters."""
    letters = sorted(made.rows(BRONZE, "source_file", "source_offset", "reasons"))
    dead = [(file, offset) for file, offset, reasons in letters if reasons]
    corrections = [
        Correction(source_file=file, source_offset=offset, payload=line.decode())
        for (file, offset), line in zip(dead, lines, strict=False)
    ]
    replays.land_corrections(corrections, dead, made.landing, letters=CONTRACTS["bronze.dead_letters"])


def pages(made: Deployment) -> list[tuple[str, str]]:
    """Return the page and visitor of the events that were not landed for the names of their files."""
    return sorted(row for row in made.rows(VISITS, "page", "user_id") if row[0].startswith("/"))
