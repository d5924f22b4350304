package io.blogdata.engine;

import java.util.List;
import java.util.Map;

/** Thrown when an open transaction's files fail an audit; nothing is committed. The message has violations as JSON. */
public final class AuditFailed extends Refusal {
  AuditFailed(Object dataset, String table, List<Map<String, Object>> violations) {
    super(
        "BLOGDATA_AUDIT_FAILED",
        "23514",
        Json.write(Map.of("dataset", dataset, "table", table, "violations", violations)));
  }
}
