package io.blogdata.engine;

import org.apache.spark.sql.delta.Snapshot;

/** Thrown when the table has changed since the batch was computed: nothing is committed. */
public final class TableMoved extends Refusal {
  /** Throws unless the table is at the version the changes were computed from. */
  static void unless(long expected, Snapshot snapshot) {
    if (snapshot.version() != expected) {
      throw new TableMoved("the changes are for version " + expected + ", the table is at " + snapshot.version());
    }
  }

  /** Throws if the batch's number is not the table's next one, because other batches were committed meanwhile. */
  static void unlessTurn(long expected, long found) {
    if (found != expected) {
      throw new TableMoved("the batch would be number " + expected + " of the table, now it is number " + found);
    }
  }

  private TableMoved(String what) {
    super("BLOGDATA_TABLE_MOVED", "40001", what);
  }
}
