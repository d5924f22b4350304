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
 * A table whose rows appear with those of another one: its files are written and audited, and not committed here.
 *
 * <p>What would be its commit is part of the commit of the table it appears with; the client makes its log follow. How many
 * rows it must have is known from that table's files, so without any nothing is written.
 */
final class Companion {
  /** Address of its table, which exists. */
  @JsonProperty("path")
  String path;

  /** Temporary view of the session with its rows. */
  @JsonProperty("view")
  String view;

  /** Measure of the other table's files: the rows that are accounted for here. */
  @JsonProperty("above")
  String above;

  /** Measure of the other table's files: how many of these are kept here. */
  @JsonProperty("kept")
  String kept;

  /** Why the others are not. */
  @JsonProperty("otherwise")
  String otherwise;

  /** What is measured and must hold. */
  @JsonProperty("audit")
  AuditSpec spec;

  /** How its partitions are replaced, as Delta's writer is told. */
  @JsonProperty("options")
  Map<String, String> options = Map.of();

  /** Ends the command that wrote the files, before it commits. */
  private static final class Held extends RuntimeException {
    final transient Audit audit;
    final transient List<AddFile> files;

    Held(Audit audit, List<AddFile> files) {
      super(null, null, false, false);
      this.audit = audit;
      this.files = files;
    }
  }

  /** Writes and audits the rows, and gives what its commit will say and which files it will add. */
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
    Held held = rows == 0 ? new Held(Audit.ofNothing(spec), List.of()) : written(spark, data, probe);
    Map<String, Object> info = new LinkedHashMap<>(spec.info);
    info.put("accounts", accounts);
    info.put("measures", held.audit.measures());
    info.put("breakdowns", held.audit.breakdowns());
    info.put("files", held.files.size());
    info.put("bytes", held.files.stream().mapToLong(AddFile::size).sum());
    info.put("column_lineage", ColumnLineage.of(data.queryExecution().analyzed()));
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
    // In a thread of its own, because Delta allows a thread one transaction; it inherits what Spark keeps with a thread.
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
