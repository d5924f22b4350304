package io.blogdata.engine;

import org.apache.spark.SparkThrowable;

/** Thrown when the engine refuses to commit; the message begins with a condition that clients can match. */
abstract class Refusal extends RuntimeException implements SparkThrowable {
  private final String condition;
  private final String sqlState;

  Refusal(String condition, String sqlState, String detail) {
    super("[" + condition + "] " + detail);
    this.condition = condition;
    this.sqlState = sqlState;
  }

  @Override
  public String getCondition() {
    return condition;
  }

  @Override
  public String getErrorClass() {
    return condition;
  }

  @Override
  public String getSqlState() {
    return sqlState;
  }
}
