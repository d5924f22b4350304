package io.blogdata.engine;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Has Spark interpret projections where there are few rows: to generate code for each takes longer than to do without.
 *
 * <p>Whole stages are compiled all the same. What a deployment has configured itself is left alone.
 */
final class FewRows {
  /** Where tenths of a second are saved; of a million rows, many seconds would be lost. */
  private static final long MOST = 10_000;

  /** What a table may hold that is read as a whole: some tens of thousands of rows. */
  private static final long MOST_BYTES = 2 << 20;

  private static final String MODE = SQLConf.CODEGEN_FACTORY_MODE().key();

  private FewRows() {}

  /** Runs something that takes in so many rows, and reads all that some table holds, or none (null). */
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

  /** What a table holds, so far as its newest commit says so: to count it takes what is to be saved here. */
  private static long bytes(DeltaLog log) {
    var checksum = log.unsafeVolatileSnapshot().checksumOpt();
    return checksum.isDefined() ? checksum.get().tableSizeBytes() : Long.MAX_VALUE;
  }
}
