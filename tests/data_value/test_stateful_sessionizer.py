"""Sessions of a stream: whatever order rows come in, until a timer of event time lets them go."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from patterns.data_value import stateful_sessionizer
from patterns.data_value.incremental_sessionizer import SessionSpec
from patterns.data_value.stateful_sessionizer import LiveSessions

SPEC = LiveSessions(
    session=SessionSpec(
        visitor="visitor",
        time="at",
        ties=("page",),
        position=("appended",),
        partition="hour",
        inactivity=timedelta(minutes=10),
        count="pages",
        first={"entry": "page"},
        last={"exit": "page"},
        path={"path": "page"},
    ),
    late=timedelta(minutes=1),
    payload="page",
)
DDL = "visitor STRING, at TIMESTAMP, page STRING, appended BIGINT"
START = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)


class Live:
    def __init__(self, spark: Any, folder: Path) -> None:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        for name, value in stateful_sessionizer.CONFIGURATION.items():
            spark.conf.set(name, value)
        self.spark, self.folder, self._landed = spark, folder, 0
        (folder / "in").mkdir()

    def land(self, *rows: tuple[str, float, str]) -> None:
        self._landed += 1
        file = self.folder / "in" / f"{self._landed:05d}.json"
        file.write_text(
            "\n".join(
                json.dumps(
                    {
                        "visitor": v,
                        "at": (START + timedelta(minutes=m)).isoformat(),
                        "page": p,
                        "appended": 1000 * self._landed + n,
                    }
                )
                for n, (v, m, p) in enumerate(rows)
            )
        )
        os.utime(file, (1_767_600_000 + self._landed,) * 2)

    def take_in(self) -> Any:
        rows = self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", "1").json(str(self.folder / "in"))
        query = (
            stateful_sessionizer.sessionize(rows, SPEC)
            .writeStream.format("delta")
            .option("checkpointLocation", str(self.folder / "point"))
            .trigger(availableNow=True)
            .start(str(self.folder / "out"))
        )
        query.awaitTermination()
        return query.recentProgress

    def rows(self) -> Any:
        return self.spark.read.format("delta").load(str(self.folder / "out"))


def test_trial(session: Any, tmp_path: Path) -> None:
    live = Live(session, tmp_path)
    live.land(("a", 0, "/1"), ("a", 1, "/2"), ("a", 8, "/3"))
    live.land(("b", 15, "/1"))
    progress = live.take_in()
    print(live.rows().collect())
    live.land(("c", 20, "/1"), ("a", 14.5, "/4"))
    progress += live.take_in()
    print(live.rows().collect())
    for one in progress:
        print(
            "BATCH",
            one["batchId"],
            one["eventTime"],
            one["stateOperators"][0]["numRowsTotal"],
            one["stateOperators"][0]["numRowsDroppedByWatermark"],
            one["durationMs"],
            flush=True,
        )
