package io.blogdata.engine;

import org.apache.spark.SparkThrowable;

/** Changes were computed from a version of a table that is no longer its newest one: nothing was committed. */
public final class TableMoved extends RuntimeException implements SparkThrowable {
  static final String CONDITION = "BLOGDATA_TABLE_MOVED";

  TableMoved(long expected, long found) {
    super("[" + CONDITION + "] the changes are for version " + expected + ", the table is at " + found);
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
    return "40001";
  }
}
