package io.blogdata.engine;

import org.apache.spark.sql.delta.Snapshot;

/** Changes were computed from a table that has changed since: nothing was committed. */
public final class TableMoved extends Refusal {
  /** Refuses a table that is at another version than the one a change is for. */
  static void unless(long expected, Snapshot snapshot) {
    if (snapshot.version() != expected) {
      throw new TableMoved("the changes are for version " + expected + ", the table is at " + snapshot.version());
    }
  }

  /** Refuses a batch when others have come since it was begun. */
  static void unlessTurn(long expected, long found) {
    if (found != expected) {
      throw new TableMoved("the batch would be number " + expected + " of the table, now it is number " + found);
    }
  }

  private TableMoved(String what) {
    super("BLOGDATA_TABLE_MOVED", "40001", what);
  }
}
