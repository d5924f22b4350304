"""What the profiles on the page of benchmarks count a call stack as."""

from __future__ import annotations

from collections import Counter

from benchmarks import profile_groups

_DELTA = "org/apache/spark/sql/delta/Snapshot.stateDF"


def test_a_stack_of_java_counts_for_the_innermost_frame_that_a_group_claims() -> None:
    read = f"[Executor task;{_DELTA};org/apache/parquet/hadoop/ParquetFileReader.read;java/util/ArrayList.add"
    loaded = f"[main tid=1;{_DELTA};java/lang/ClassLoader.loadClass;java/util/zip/Inflater.inflate"
    assert profile_groups.of_java({read: 3, loaded: 2, "[main tid=1;java/lang/Thread.run": 1}) == {
        "Parquet: files": 3,
        "Java: loading classes": 2,
        "other": 1,
    }


def test_threads_of_java_itself_count_as_what_they_do() -> None:
    stacks = {"[C2 CompilerThre tid=9;C2Compiler::compile_method": 4, "[GC Thread#0 tid=3;PSScavenge": 2}
    assert profile_groups.of_java(stacks) == {
        "Java: compiling what runs often (C2)": 4,
        "Java: its memory (GC)": 2,
    }


def test_what_is_done_while_a_module_is_imported_counts_as_the_import() -> None:
    imported = "main (a.py:1);<module> (/venv/dagster/core.py:3);_find (<frozen importlib._bootstrap>:9)"
    asked = "main (a.py:1);collect (/venv/pyspark/sql/connect/client.py:7);loads (json.py:5)"
    waiting = "main (a.py:1);collect (/venv/pyspark/sql/connect/client.py:7);Condition.wait (threading.py:5)"
    assert profile_groups.of_python({imported: 2, asked: 1, waiting: 5}) == {
        "Python: importing modules": 2,
        "Python: Spark's client": 1,
    }


def test_the_ten_largest_groups_are_shares_of_all() -> None:
    shares = profile_groups.top(Counter({f"group {number}": number for number in range(1, 12)}))
    assert next(iter(shares)) == "group 11"
    assert "group 1" not in shares
    assert shares["group 11"] == 16.7


def test_collapsed_stacks_are_read_with_spaces_in_their_frames() -> None:
    assert profile_groups.parse(["[GC Thread#0 tid=3];run 5\n", "[GC Thread#0 tid=3];run 2"]) == {
        "[GC Thread#0 tid=3];run": 7
    }
