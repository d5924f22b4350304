package io.blogdata.engine;

/** Changes were computed from a version of a table that is no longer its newest one: nothing was committed. */
public final class TableMoved extends Refusal {
  TableMoved(long expected, long found) {
    super("BLOGDATA_TABLE_MOVED", "40001", "the changes are for version " + expected + ", the table is at " + found);
  }
}
