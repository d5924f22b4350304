"""Groups sampled call stacks by what a reader knows: each stack belongs to its innermost frame that a group claims."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

REST = "other"
_JAVA_THREADS = (
    ("Java: compiling what runs often (C2)", re.compile(r"\[C2 CompilerThre")),
    ("Java: compiling at first (C1)", re.compile(r"\[C1 CompilerThre")),
    ("Java: sweeping compiled code", re.compile(r"\[Sweeper")),
    ("Java: its memory (GC)", re.compile(r"\[(GC |ParGC|VM |Concurrent|G1 )")),
)
_JAVA = (
    (
        "Spark: compiling the code it generates",
        re.compile(r"org/codehaus/|expressions/codegen/"),
    ),
    (
        "Spark: computing rows",
        re.compile(r"GeneratedClass|catalyst/expressions/(Unsafe|Join|xml|Json)|execution/\w+Exec\$"),
    ),
    (
        "Java: loading classes",
        re.compile(
            r"java/lang/(ClassLoader|Class\.forName)|invoke/(MethodHandleNatives\.link|InnerClassLambda)|internal/loader"
        ),
    ),
    ("Delta: logs and commits", re.compile(r"spark/sql/delta/|io/delta/")),
    ("Parquet: files", re.compile(r"org/apache/parquet|datasources/parquet|luben/zstd")),
    ("this project's engine: landed lines, audits, keys", re.compile(r"io/blogdata/engine")),
    ("Spark: requests of the client", re.compile(r"spark/sql/connect/|io/grpc|google/protobuf|io/netty")),
    ("Spark: sorts and shuffles", re.compile(r"spark/shuffle|unsafe/sort|util/collection|execution/UnsafeE")),
    ("Spark: planning queries", re.compile(r"spark/sql/(catalyst|execution|internal|classic|sources)")),
    (
        "Spark: starting jobs and tasks",
        re.compile(
            r"org/apache/spark/(scheduler|executor|storage|broadcast|serializer|rpc|status|util|rdd|memory|Spark|Map)"
        ),
    ),
    ("files: Hadoop's file system", re.compile(r"org/apache/hadoop/fs")),
)
_WAITING = re.compile(
    r"^(_worker|channel_spin|.*\.channel_spin|_blocking|.*_blocking|wait|.*\.wait|.*__enter__|_serves) \("
)
"""Where a thread of Python waits that py-spy takes for busy: in a lock, in gRPC, for the server's start."""
_PYTHON = (
    ("Python: importing modules", re.compile(r"<frozen importlib|^<module> \((?!<string>)")),
    ("Python: Dagster's runs and events", re.compile(r"[(/](dagster\w*|sqlalchemy|alembic)/")),
    ("Python: Spark's client", re.compile(r"[(/](pyspark|grpc|google)/")),
    ("Python: Delta's logs and Arrow", re.compile(r"[(/](deltalake|pyarrow|arro3)/")),
    ("Python: this project", re.compile(r"[(/](blogdata|assets|quality|transforms|resources|sensors)/")),
)


def of_java(stacks: Mapping[str, int]) -> Counter[str]:
    """Group stacks of async-profiler.

    Args:
        stacks: `[thread];outermost;…;innermost` to its samples.

    Returns:
        Samples by group.
    """
    found: Counter[str] = Counter()
    for stack, samples in stacks.items():
        thread, *frames = stack.split(";")
        group = next((name for name, pattern in _JAVA_THREADS if pattern.match(thread)), None)
        found[group or _innermost(frames, _JAVA)] += samples
    return found


def of_python(stacks: Mapping[str, int]) -> Counter[str]:
    """Group stacks of py-spy.

    Args:
        stacks: `outermost;…;innermost`, each `function (file:line)`, to its samples.

    Returns:
        Samples by group.
    """
    found: Counter[str] = Counter()
    for stack, samples in stacks.items():
        frames = stack.split(";")
        if not _WAITING.match(frames[-1]):
            found[_innermost(frames, _PYTHON)] += samples
    return found


def parse(lines: Iterable[str]) -> Counter[str]:
    """Read collapsed stacks: a stack, a space and its number of samples a line."""
    found: Counter[str] = Counter()
    for line in lines:
        stack, _, samples = line.rstrip("\n").rpartition(" ")
        found[stack] += int(samples)
    return found


def top(shares: Counter[str], count: int = 10) -> dict[str, float]:
    """Return the largest groups in percent of all, the largest first."""
    whole = sum(shares.values())
    return {name: round(100 * share / whole, 1) for name, share in shares.most_common(count)}


def _innermost(frames: Sequence[str], groups: Sequence[tuple[str, re.Pattern[str]]]) -> str:
    for frame in reversed(frames):
        for name, pattern in groups:
            if pattern.search(frame):
                return name
    return REST
