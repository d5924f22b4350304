"""The table of certificates of erasures (`ops.erasure_certificates`), which :mod:`blogdata.erasure` writes."""

from __future__ import annotations

import pyarrow as pa

CERTIFICATES = "ops.erasure_certificates"
_TEXT, _COUNT = pa.string(), pa.int64()
SCHEMA = pa.schema(
    {
        "certificate": _TEXT,
        "issued_at": pa.timestamp("us", tz="UTC"),
        "code_version": _TEXT,
        "persons": _TEXT,
        "place": _TEXT,
        "files": _COUNT,
        "rows": _COUNT,
        "gone": _TEXT,
        "note": _TEXT,
        "left_because": _TEXT,
        "files_with_values": _COUNT,
    }
)
