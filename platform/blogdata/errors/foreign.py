"""What an error of a library says, without the values that it quotes.

Messages of Spark, PostgreSQL, Arrow and Python quote rows, keys and values: stored or sent, they take a person's login
or address into the event log, Dagster's storage, a mail. So only names of parts of the schema are kept (an error's
condition, a constraint, a column, a table, a type), which no row can choose.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from typing import Any

from blogdata.errors import PlatformError

_SPARK = ("constraintName", "columnName", "colName", "objectName", "fieldName", "tableName", "sourceType", "targetType")
"""Parameters of Spark's and Delta's errors that are names; the others may be values, expressions or rows."""
_POSTGRES = ("schema_name", "table_name", "column_name", "datatype_name", "constraint_name")
_NAMED = re.compile(r"CHECK (constraint \w+) |NOT NULL constraint violated for (column: [\w.]+)")
_CONDITION = re.compile(r"\[([A-Z]+(?:_[A-Z]+)+(?:\.[A-Z_]+)?)\]")
"""Where Spark wraps an error of a task, only the text has its condition and the name."""
_FRAMES = 4


def unquoted(error: BaseException) -> str:
    """Return what an error of a library is about: its kind and the parts of the schema it names, and no value."""
    if isinstance(error, PlatformError):
        return error.what
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    original = getattr(error, "orig", None)
    if isinstance(original, BaseException):
        return unquoted(original)
    names = _named(error)
    return f"{_kind(error)}{f' ({names})' if names else ''}"


def unforeseen(error: BaseException) -> PlatformError:
    """Return the error of the platform for one that nothing expects: its kind and where it was raised, no value."""
    every = traceback.extract_tb(error.__traceback__)
    # Compiled modules name relative files.
    ours = [frame for frame in every if frame.filename.startswith("/") and "site-packages" not in frame.filename]
    frames = [f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno}" for frame in (ours or every)[-_FRAMES:]]
    return PlatformError(
        what=f"an unforeseen error: {unquoted(error)}",
        where=" < ".join(reversed(frames)) or "?",
        next_step="run it again; if it repeats, report it with these lines; Spark's own log, in services/spark of the "
        "deployment's folder, may say more",
    )


def _kind(error: BaseException) -> str:
    name = type(error).__name__
    if code := getattr(error, "sqlstate", None):
        return f"{name}, SQLSTATE {code}"
    if not hasattr(error, "getCondition"):
        return name
    match = _CONDITION.search(str(error))
    return str(_called(error, "getCondition") or (match[1] if match else name))


def _named(error: BaseException) -> str:
    given = _called(error, "getMessageParameters")
    names = {name: given[name] for name in _SPARK if name in given} if isinstance(given, Mapping) else {}
    if (diagnosis := getattr(error, "diag", None)) is not None:
        names = {name.removesuffix("_name"): getattr(diagnosis, name) for name in _POSTGRES}
    if not names and hasattr(error, "getCondition") and (match := _NAMED.search(str(error))):
        return match[1] or match[2]
    return ", ".join(f"{name}: {value}" for name, value in names.items() if value)


def _called(error: BaseException, name: str) -> Any:
    method = getattr(error, name, None)
    return method() if callable(method) else None
