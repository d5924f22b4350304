"""Bronze to gold as one hand-written PySpark and Delta script: the platform's peer on the same server.

It computes the tables of :mod:`benchmarks.straight_sql`, each written once for the whole span with `partitionBy` and
`replaceWhere`. Nothing of the platform is used save what cuts files into lines: Spark has no byte offsets. It trusts
its input where the platform does not: no line contains the marker that separates objects.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.straight_rules import judged_ads, judged_visits
from benchmarks.straight_sql import ADDRESSES, TABLES, WITH_PLACES, Table, landed, places
from blogdata.landing.lines import LineReader, read


class Unread(LineReader):
    """Finds nothing in a line: what is in it is found by Spark."""

    columns = ()

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], tuple[()]]:
        return lambda offset, raw: ()


class Script:
    """The script, as a class to share the session and both folders."""

    def __init__(self, spark: SparkSession, landing: Path, lake: Path) -> None:
        self.spark, self.landing, self.lake = spark, landing, lake
        self.days = sorted(folder.name[len("date=") :] for folder in landing.glob("visits/date=*"))

    def run(self) -> None:
        """Compute bronze, silver and gold."""
        for name in ("users", "devices"):
            lines = self.lines(name, "part").withColumn("text", F.col("raw").cast("string"))
            lines.createOrReplaceTempView(f"landed_{name}")
        judged_visits(self.lines("visits", "arrival_hour")).createOrReplaceTempView("judged_visits")
        judged_ads(self.lines("ads", "arrival_hour")).createOrReplaceTempView("judged_ads")
        for name, table in TABLES.items():
            self.compute(name, table)
        answers = places([row[0] for row in self.spark.sql(ADDRESSES).collect()])
        addresses = self.spark.createDataFrame(answers, "ip string, outcome string, country string")
        addresses.createOrReplaceTempView("addresses")
        for name, table in WITH_PLACES.items():
            self.compute(name, table)

    def compute(self, name: str, table: Table) -> None:
        frame = self.spark.sql(table.query)
        if "." in name:
            self.write(frame, name, table.partition)
        else:
            frame.createOrReplaceTempView(name)

    def write(self, frame: DataFrame, name: str, partition: str | None) -> None:
        path = f"{self.lake}/{name.replace('.', '/')}"
        writer = frame.write.format("delta").mode("overwrite")
        if partition:
            # The week of the first day begins before its hours and days.
            first = date.fromisoformat(self.days[0])
            monday = first - timedelta(days=first.weekday())
            writer = writer.partitionBy(partition).option("replaceWhere", f"{partition} >= '{monday}'")
        writer.save(path)
        self.spark.read.format("delta").load(path).createOrReplaceTempView(name.replace(".", "_"))

    def lines(self, table: str, partition: str) -> DataFrame:
        files: dict[str, list[Path]] = {}
        for part, file in landed(self.landing, table):
            files.setdefault(part, []).append(file)
        # Texts of a schema that is sent to Spark name their collation, which delta-rs does not know.
        name, part_of = F.col("source_file").cast("string"), F.col("partition").cast("string").alias(partition)
        return read(self.spark, self.landing, files, Unread()).select("raw", name, "source_offset", part_of)
