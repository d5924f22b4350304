"""Writer properties of data files written without a JVM: the compression that Spark uses for the tables."""

from __future__ import annotations

from deltalake import WriterProperties

ZSTD = WriterProperties(compression="ZSTD", compression_level=3)
