"""Starts Spark's Python workers, each a fork of this process, with what they need imported already.

Problem: every new worker imports pyarrow and pandas, which takes some tenths of a second of CPU time, and Spark ends
workers that had nothing to do for a minute.
How it works: `spark_launch` makes Spark start this module instead of `pyspark.daemon`; its workers share the imports.
"""

from __future__ import annotations

import importlib

_IMPORTED = ("msgspec", "pandas", "pyarrow", "pyspark.sql.pandas.serializers", "blogdata.landing.lines")


def main() -> None:
    for module in _IMPORTED:
        importlib.import_module(module)
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
