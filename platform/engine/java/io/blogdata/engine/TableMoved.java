package io.blogdata.engine;

import org.apache.spark.sql.delta.Snapshot;

/** Changes were computed from a version of a table that is no longer its newest one: nothing was committed. */
public final class TableMoved extends Refusal {
  /** Refuses a table that is at another version than the one a change is for. */
  static void unless(long expected, Snapshot snapshot) {
    if (snapshot.version() != expected) {
      throw new TableMoved(expected, snapshot.version());
    }
  }

  TableMoved(long expected, long found) {
    super("BLOGDATA_TABLE_MOVED", "40001", "the changes are for version " + expected + ", the table is at " + found);
  }
}
