"""Folders of JSON files that a stream reads, one file of each per batch."""

import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any


class Stream:
    """A query over some inputs, each with its schema, that appends to a table."""

    def __init__(self, spark: Any, folder: Path, inputs: dict[str, str], query: Callable[..., Any]) -> None:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        self.spark, self.folder, self.inputs, self.query, self._landed = spark, folder, inputs, query, 0
        for name in inputs:
            (folder / name).mkdir()

    def land(self, *rows: Sequence[Any]) -> None:
        self._landed += 1
        for (name, ddl), rows_of_input in zip(self.inputs.items(), rows, strict=True):
            names = [column.split()[0] for column in ddl.split(", ")]
            lines = (
                json.dumps(dict(zip(names, row, strict=True)), default=datetime.isoformat) for row in rows_of_input
            )
            file = self.folder / name / f"{self._landed:05d}.json"
            file.write_text("\n".join(lines))
            os.utime(file, (1_767_600_000 + self._landed,) * 2)

    def take_in(self) -> list[Any]:
        """Process the available files; return the progress of the batches, in order."""
        reader = self.spark.readStream.option("maxFilesPerTrigger", "1")
        rows = self.query(*(reader.schema(ddl).json(str(self.folder / name)) for name, ddl in self.inputs.items()))
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.folder / "point"))
        query = writer.trigger(availableNow=True).start(str(self.folder / "out"))
        query.awaitTermination()
        return sorted(query.recentProgress, key=lambda progress: progress["batchId"])

    def out(self) -> Any:
        return self.spark.read.parquet(str(self.folder / "out"))
