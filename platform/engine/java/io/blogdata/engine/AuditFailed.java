package io.blogdata.engine;

import java.util.List;
import java.util.Map;

/** The files of an open transaction broke an audit: nothing was committed. The message carries the violations as JSON. */
public final class AuditFailed extends Refusal {
  AuditFailed(Object dataset, String table, List<Map<String, Object>> violations) {
    super(
        "BLOGDATA_AUDIT_FAILED",
        "23514",
        Json.write(Map.of("dataset", dataset, "table", table, "violations", violations)));
  }
}
