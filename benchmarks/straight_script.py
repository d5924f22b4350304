"""Bronze to gold as one hand-written PySpark and Delta script: the platform's peer on the same server.

It computes the tables of :mod:`benchmarks.straight_sql`, each written once for the whole span with `partitionBy` and
`replaceWhere`. Nothing of the platform is used save its line reader: Spark's own has no byte offsets. It trusts its
input where the platform does not: no line contains the marker that separates objects.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.straight_rules import judged_ads, judged_visits
from benchmarks.straight_sql import ADDRESSES, TABLES, WITH_PLACES, Table, places


class Script:
    """The script, as a class to share the session and both folders."""

    def __init__(self, spark: SparkSession, landing: Path, lake: Path) -> None:
        self.spark, self.landing, self.lake = spark, landing, lake
        self.days = sorted(folder.name[len("date=") :] for folder in landing.glob("visits/date=*"))

    def run(self) -> None:
        """Compute bronze, silver and gold."""
        day, text = F.col("date").cast("string"), F.col("raw").cast("string")
        users, devices = (self.lines(name).withColumns({"part": day, "text": text}) for name in ("users", "devices"))
        users.createOrReplaceTempView("landed_users")
        devices.where(F.col("part") == self.days[-1]).createOrReplaceTempView("landed_devices")
        hour = F.format_string("%sT%02d", day, F.col("hour"))
        visits, ads = (self.lines(name).withColumn("arrival_hour", hour) for name in ("visits", "ads"))
        judged_visits(visits).createOrReplaceTempView("judged_visits")
        judged_ads(ads).createOrReplaceTempView("judged_ads")
        for name, table in TABLES.items():
            self.compute(name, table)
        found = places([row[0] for row in self.spark.sql(ADDRESSES).collect()])
        addresses = self.spark.createDataFrame(found, "ip string, outcome string, country string")
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

    def lines(self, table: str) -> DataFrame:
        read = self.spark.read.format("lines").load(str(self.landing / table))
        return read.withColumn("source_file", F.substring_index("_metadata.file_path", f"{self.landing}/", -1))
