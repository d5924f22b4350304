package io.blogdata.engine;

import java.util.List;
import java.util.Map;
import org.apache.spark.SparkThrowable;

/** The files of an open transaction broke an audit: nothing was committed. The message carries the violations as JSON. */
public final class AuditFailed extends RuntimeException implements SparkThrowable {
  static final String CONDITION = "BLOGDATA_AUDIT_FAILED";

  AuditFailed(String table, List<Map<String, Object>> violations) {
    super("[" + CONDITION + "] " + Json.write(Map.of("table", table, "violations", violations)));
  }

  @Override
  public String getCondition() {
    return CONDITION;
  }

  @Override
  public String getErrorClass() {
    return CONDITION;
  }

  @Override
  public String getSqlState() {
    return "23514";
  }
}
