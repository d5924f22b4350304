"""A stream reads file names literally and detects formats by content, as the batch datasets do."""

from __future__ import annotations

import gzip
import lzma
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from assets.streams.live_visits import STREAM
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment, event
from lineage.live import BRONZE, problems, tick

__all__ = ["deploy"]

HOUR = "2026-01-05T10"
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


def test_each_file_is_streamed_once_under_its_own_name(deploy: Deploy) -> None:
    created = deploy("a stream")
    landing = created.settings.home / "zone [1] {2}*?" / "landing"
    deployment = Deployment(settings=replace(created.settings, landing=landing))
    for number, (name, packed) in enumerate(FILES.items()):
        (deployment.folder(HOUR) / name).parent.mkdir(parents=True, exist_ok=True)
        content = b"".join(event(f"10:{minute:02}", f"{number}") + b"\n" for minute in range(number + 1))
        (deployment.folder(HOUR) / name).write_bytes(packed(content))
    os.mkfifo(deployment.folder(HOUR) / "pipe.json")
    tick(deployment, STREAM)
    place = f"visits/date={HOUR[:10]}/hour={HOUR[11:]}"
    expected = {f"{place}/{name}": at + 1 for at, name in enumerate(FILES) if name in STREAMED}
    assert Counter(deployment.rows(BRONZE, "source_file")) == expected
    assert problems(deployment) == []
