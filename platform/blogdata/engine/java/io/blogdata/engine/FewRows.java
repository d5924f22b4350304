package io.blogdata.engine;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Makes Spark interpret projections for few rows, where generating code takes longer than it saves.
 *
 * <p>Whole-stage code generation stays on. A setting of the deployment is not overridden.
 */
final class FewRows {
  /** Up to this many rows, tenths of a second are saved; with a million rows, many seconds would be lost. */
  private static final long MOST = 10_000;

  /** Maximum bytes of a table that is read whole: some tens of thousands of rows. */
  private static final long MOST_BYTES = 2 << 20;

  private static final String MODE = SQLConf.CODEGEN_FACTORY_MODE().key();

  private FewRows() {}

  /** Runs a command that takes in {@code rows} rows and reads the whole table {@code read}, or none (null). */
  static void with(SparkSession spark, long rows, DeltaLog read, Runnable command) {
    SQLConf conf = spark.sessionState().conf();
    if (rows > MOST || conf.contains(MODE) || (read != null && bytes(read) > MOST_BYTES)) {
      command.run();
      return;
    }
    conf.setConfString(MODE, "NO_CODEGEN");
    try {
      command.run();
    } finally {
      conf.unsetConf(MODE);
    }
  }

  /** Returns a table's bytes by its newest checksum; without one the maximum: a count costs what is saved here. */
  private static long bytes(DeltaLog log) {
    var checksum = log.unsafeVolatileSnapshot().checksumOpt();
    return checksum.isDefined() ? checksum.get().tableSizeBytes() : Long.MAX_VALUE;
  }
}
