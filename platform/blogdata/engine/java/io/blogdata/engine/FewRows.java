package io.blogdata.engine;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Has Spark plan for few rows: projections are interpreted, where generating code takes longer than it saves, and a
 * query is one job, where one for each shuffle (adaptive execution) takes longer than a better plan of the rest saves.
 *
 * <p>Whole-stage code generation stays on. A setting of the deployment is not overridden. Settings are the session's:
 * while another command of it takes in many rows, they are as usual for both.
 *
 * <p>In Java, because the analysed plan says what is read, and a client's settings would cost several requests a write.
 */
final class FewRows {
  /** Up to this many rows, tenths of a second are saved; with a million rows, many seconds would be lost. */
  private static final long MOST = 10_000;

  /** Maximum bytes of the tables that are read whole: some tens of thousands of rows. */
  private static final long MOST_BYTES = 2 << 20;

  private static final long UNKNOWN = Integer.MAX_VALUE;
  private static final String ADAPTIVE = SQLConf.ADAPTIVE_EXECUTION_ENABLED().key();
  private static final String PARTITIONS = SQLConf.SHUFFLE_PARTITIONS().key();
  private static final String MODE = SQLConf.CODEGEN_FACTORY_MODE().key();
  private static final Map<SQLConf, FewRows> SESSIONS = new WeakHashMap<>();

  private final Map<String, String> before = new LinkedHashMap<>();
  private int commands;
  private int large;

  private FewRows() {}

  /** Runs a command that takes in {@code rows} rows of {@code data}. */
  static void with(SparkSession spark, long rows, Dataset<Row> data, Runnable command) {
    SQLConf conf = spark.sessionState().conf();
    boolean many = rows > MOST || readWhole(data) > MOST_BYTES;
    count(conf, 1, many);
    if (many && !conf.contains(MODE)) {
      // Tasks are told by the thread's properties, and those are of the moment at which the command began.
      spark.sparkContext().setLocalProperty(MODE, null);
    }
    try {
      command.run();
    } finally {
      count(conf, -1, many);
    }
  }

  private static synchronized void count(SQLConf conf, int more, boolean many) {
    FewRows session = SESSIONS.computeIfAbsent(conf, absent -> new FewRows());
    session.commands += more;
    session.large += many ? more : 0;
    session.before.forEach((key, value) -> set(conf, key, value));
    session.before.clear();
    if (session.commands > 0 && session.large == 0) {
      settings(conf).forEach((key, value) -> {
        session.before.put(key, conf.contains(key) ? conf.getConfString(key) : null);
        set(conf, key, value);
      });
    }
  }

  private static Map<String, String> settings(SQLConf conf) {
    Map<String, String> settings = new LinkedHashMap<>();
    if (!conf.contains(MODE)) {
      settings.put(MODE, "NO_CODEGEN");
    }
    if (!conf.contains(ADAPTIVE)) {
      settings.put(ADAPTIVE, "false");
      settings.put(PARTITIONS, "1");
    }
    return settings;
  }

  private static void set(SQLConf conf, String key, String value) {
    if (value == null) {
      conf.unsetConf(key);
    } else {
      conf.setConfString(key, value);
    }
  }

  /**
   * Returns the bytes of files that are read by name. Tables without partitions that Delta's log lists count as large:
   * to add up their bytes costs what is saved here. Others are read in part.
   */
  private static long readWhole(Dataset<Row> data) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset<Row>) data).queryExecution().analyzed();
    long sum = 0;
    for (LogicalPlan leaf : CollectionConverters.asJava(plan.collectLeaves())) {
      if (leaf instanceof LogicalRelation && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation) {
        HadoopFsRelation relation = (HadoopFsRelation) ((LogicalRelation) leaf).relation();
        boolean named = relation.location() instanceof InMemoryFileIndex;
        sum += named ? relation.location().sizeInBytes() : relation.partitionSchema().isEmpty() ? UNKNOWN : 0;
      }
    }
    return sum;
  }
}
