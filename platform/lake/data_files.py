"""How data files are written without a JVM: compressed as Spark compresses those of the tables."""

from __future__ import annotations

from deltalake import WriterProperties

ZSTD = WriterProperties(compression="ZSTD", compression_level=3)
