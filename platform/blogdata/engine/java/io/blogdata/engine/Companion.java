package io.blogdata.engine;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.net.URI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.SetTransaction;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A companion table: its rows are published together with those of its main table. Here its files are written and
 * audited, but not committed.
 *
 * <p>The contents of its commit are recorded in the main table's commit; the client then commits them to the
 * companion's log. Its expected row count is computed from the main table's files; if that is zero, nothing is written.
 */
final class Companion {
  /** Path of the companion's table, which must exist. */
  @JsonProperty("path")
  String path;

  /** Temporary view in the session with its rows. */
  @JsonProperty("view")
  String view;

  /** Name of the measure of the main table's files that counts the rows accounted for by this companion. */
  @JsonProperty("above")
  String above;

  /** Name of the measure of the main table's files that counts how many of these rows the companion keeps. */
  @JsonProperty("kept")
  String kept;

  /** Reason recorded for the rows that it does not keep. */
  @JsonProperty("otherwise")
  String otherwise;

  /** Measures and audits of its rows. */
  @JsonProperty("audit")
  AuditSpec spec;

  /** Options of Delta's writer by which its partitions are replaced. */
  @JsonProperty("options")
  Map<String, String> options = Map.of();

  /** Thrown to end the command that wrote the files before it commits; carries the audit and the files. */
  private static final class Held extends RuntimeException {
    final transient Audit audit;
    final transient List<AddFile> files;

    Held(Audit audit, List<AddFile> files) {
      super(null, null, false, false);
      this.audit = audit;
      this.files = files;
    }
  }

  /** Writes and audits the rows; returns the metadata, files and partitions of the companion's future commit. */
  Map<String, Object> hold(SparkSession spark, Map<String, Map<String, Object>> measured, Probe probe) {
    Map<String, Object> accounts = new LinkedHashMap<>();
    Map<String, Map<String, Long>> expected = new TreeMap<>();
    long rows = 0;
    for (Map.Entry<String, Map<String, Object>> partition : measured.entrySet()) {
      long in = ((Number) partition.getValue().get(above)).longValue();
      long here = ((Number) partition.getValue().get(kept)).longValue();
      accounts.put(partition.getKey(), Map.of("rows_in", in, "reasons", Map.of(otherwise, in - here)));
      expected.put(partition.getKey(), Map.of("accounted", here));
      rows += here;
    }
    spec.expected = expected;
    Dataset<Row> data = spark.table(view);
    ColumnLineage lineage = ColumnLineage.of(data);
    spec.requireDeclared(lineage);
    Held held = rows == 0 ? new Held(Audit.ofNothing(spec), List.of()) : written(spark, data, probe);
    Map<String, Object> info = new LinkedHashMap<>(spec.info);
    info.put("accounts", accounts);
    info.put("measures", held.audit.measures());
    info.put("breakdowns", held.audit.breakdowns());
    info.put("files", held.files.size());
    info.put("bytes", held.files.stream().mapToLong(AddFile::size).sum());
    lineage.describe(info);
    List<Object> files = new ArrayList<>();
    for (AddFile file : held.files) {
      Map<String, Object> added = new LinkedHashMap<>();
      added.put("path", URI.create(file.path()).getPath());
      added.put("size", file.size());
      added.put("partition_values", CollectionConverters.asJava(file.partitionValues()));
      added.put("modification_time", file.modificationTime());
      added.put("stats", file.stats());
      files.add(added);
    }
    return Map.of("info", info, "added", files, "partitions", spec.partitions);
  }

  private Held written(SparkSession spark, Dataset<Row> data, Probe probe) {
    // In a new thread: Delta allows one transaction per thread. The thread inherits Spark's local properties.
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try {
      return thread
          .submit(
              () -> {
                SparkSession.setActiveSession(spark);
                return write(spark, data, probe);
              })
          .get();
    } catch (ExecutionException error) {
      throw Queries.<RuntimeException>unchanged(error.getCause());
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while a companion was written", error);
    } finally {
      thread.shutdownNow();
    }
  }

  private Held write(SparkSession spark, Dataset<Row> data, Probe probe) {
    DeltaLog log = DeltaLog.forTable(spark, new Path(path));
    SetTransaction never = new SetTransaction(path, 1L, Option.empty());
    scala.collection.immutable.Map<String, String> parameters =
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(options));
    try {
      Begin.with(
          log,
          begun ->
              AuditedTransaction.insteadOf(
                  begun,
                  (open, actions) -> {
                    List<AddFile> added = new ArrayList<>();
                    actions.forEach(
                        action -> {
                          if (action instanceof AddFile) {
                            added.add((AddFile) action);
                          }
                        });
                    Audit audit = Audit.of(AuditedWrite.uncommitted(log, open, added), spec);
                    if (!audit.violations().isEmpty()) {
                      throw new AuditFailed(spec.info.get("dataset"), path, audit.violations());
                    }
                    probe.reached("audited");
                    throw new Held(audit, added);
                  },
                  never,
                  null,
                  probe),
          () ->
              AuditedWrite.overwrite(
                  spark,
                  log,
                  SaveMode.Overwrite,
                  parameters,
                  (org.apache.spark.sql.classic.Dataset<Row>) data));
    } catch (Held held) {
      return held;
    }
    throw new IllegalStateException("the files of " + path + " were not held");
  }
}
