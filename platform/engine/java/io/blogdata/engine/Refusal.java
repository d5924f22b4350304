package io.blogdata.engine;

import org.apache.spark.SparkThrowable;

/** The engine did not commit: a condition that clients tell apart, at the head of the message. */
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
