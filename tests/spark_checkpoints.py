"""The files of a stream's checkpoint, as Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path

from blogdata.patterns.error_management.checkpointer import Checkpoint


def take(checkpoint: Checkpoint, *files: Path, planned: int = 0, committed: int = 0) -> None:
    """Add a batch for each file to the checkpoint; plan and commit the first ones."""
    root = Path(checkpoint.location)
    for folder in ("sources/0", "offsets", "commits"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        entry = json.dumps({"path": f"file://{file}", "timestamp": 0, "batchId": number})
        (root / "sources" / "0" / str(number)).write_text(f"v1\n{entry}")
    for number in range(planned):
        (root / "offsets" / str(number)).write_text(f'v1\n{{"batchTimestampMs":0}}\n{{"logOffset":{number}}}')
    for number in range(committed):
        (root / "commits" / str(number)).write_text("v1\n{}")
    (root / "metadata").write_text('{"id":"0a1b2c3d-0000-0000-0000-000000000000"}')
