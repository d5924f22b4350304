package io.blogdata.engine;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Has Spark interpret projections where there are few rows: to generate code for each takes longer than to do without.
 *
 * <p>Whole stages are compiled all the same. What a deployment has configured itself is left alone.
 */
final class FewRows {
  /** Where tenths of a second are saved; of a million rows, many seconds would be lost. */
  private static final long MOST = 10_000;

  private static final String MODE = SQLConf.CODEGEN_FACTORY_MODE().key();

  private FewRows() {}

  /** Runs something that takes in so many rows. */
  static void with(SparkSession spark, long rows, Runnable command) {
    SQLConf conf = spark.sessionState().conf();
    if (rows > MOST || conf.contains(MODE)) {
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
}
