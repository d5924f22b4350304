"""Starts Spark's Python workers, each a fork of this process, with what they need imported already.

Problem: every new worker imports pyarrow and pandas, which takes some tenths of a second of CPU time, and Spark ends
workers that had nothing to do for a minute.
How it works: `spark_launch` makes Spark start this module instead of `pyspark.daemon`; its workers share the imports.
"""

from __future__ import annotations

import gc


def main() -> None:
    import pandas  # type: ignore[import-untyped] # noqa: F401
    from pyspark.daemon import manager

    import blogdata.landing.json_lines
    import blogdata.landing.lines  # noqa: F401

    # What is imported is no garbage, and stays in memory that the workers share.
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
