package io.blogdata.engine;

import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.DeltaOptions;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.commands.WriteIntoDelta;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes into a Delta table so that nobody ever reads a row that was not audited.
 *
 * <p>Delta's own write command runs inside a transaction that stays open; the audits then read the very files it
 * wrote, and only if all of them hold is the transaction committed, with the measures in the commit's metadata. A
 * failed audit or a killed process leaves the log as it was, and files that no version names for vacuum.
 *
 * <p>Options: {@code path}, {@code audit} ({@link AuditSpec} as JSON), and Delta's own {@code replaceWhere},
 * {@code txnAppId}, {@code txnVersion}. {@code probe} names a folder for stepping through the phases in tests.
 */
public final class AuditedWrite implements CreatableRelationProvider, DataSourceRegister {

  @Override
  public String shortName() {
    return "audited-delta";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> parameters, Dataset<Row> rows) {
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(CollectionConverters.asJava(parameters));
    AuditSpec spec = Json.read(required(options, "audit"), AuditSpec.class);
    Probe probe = new Probe(options.get("probe"));
    org.apache.spark.sql.classic.Dataset<Row> data = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    SparkSession spark = data.sparkSession();
    String table = required(options, "path");

    DeltaLog log = DeltaLog.forTable(spark, new Path(table));
    DeltaOptions deltaOptions = new DeltaOptions(parameters, spark.sessionState().conf());
    WriteIntoDelta write =
        new WriteIntoDelta(
            log,
            mode,
            deltaOptions,
            Scala.seq(List.of()),
            scala.collection.immutable.Map$.MODULE$.empty(),
            data,
            Option.empty(),
            Option.empty(),
            false);
    OptimisticTransaction transaction = log.startTransaction();
    if (write.hasBeenExecuted(transaction, spark, Option.apply(deltaOptions))) {
      return Scala.relation(context, data.schema());
    }
    OptimisticTransaction$.MODULE$.setActive(transaction);
    try {
      probe.reached("opened");
      scala.collection.immutable.Seq<Action> actions = write.write(transaction, spark, Option.empty(), false);
      probe.reached("written");
      List<AddFile> added = addedFiles(actions);
      Audit audit = Audit.of(uncommitted(log, transaction, added), spec);
      if (!audit.violations().isEmpty()) {
        throw new AuditFailed(table, audit.violations());
      }
      probe.reached("audited");
      DeltaOperations.Operation operation =
          new DeltaOperations.Write(
              mode,
              Option.empty(),
              Option.apply(options.get("replaceWhere")),
              Option.apply(commitInfo(spec, audit, added, data)),
              Option.empty(),
              Option.empty(),
              Option.empty(),
              Option.empty(),
              Option.empty());
      transaction.commitIfNeeded(actions, operation, scala.collection.immutable.Map$.MODULE$.empty());
      probe.reached("committed");
    } finally {
      OptimisticTransaction$.MODULE$.clearActive();
    }
    return Scala.relation(context, data.schema());
  }

  private static String required(Map<String, String> options, String name) {
    String value = options.get(name);
    if (value == null) {
      throw new IllegalArgumentException("audited-delta needs the option '" + name + "'");
    }
    return value;
  }

  private static List<AddFile> addedFiles(scala.collection.immutable.Seq<Action> actions) {
    List<AddFile> added = new ArrayList<>();
    for (Action action : CollectionConverters.asJava(actions)) {
      if (action instanceof AddFile) {
        added.add((AddFile) action);
      }
    }
    return added;
  }

  /** The uncommitted files through the transaction's own view: column mapping and partition values apply. */
  private static Dataset<Row> uncommitted(
      DeltaLog log, OptimisticTransaction transaction, List<AddFile> added) {
    return log.createDataFrame(transaction.snapshot(), Scala.seq(added), false, Option.empty());
  }

  private static String commitInfo(
      AuditSpec spec, Audit audit, List<AddFile> added, org.apache.spark.sql.classic.Dataset<Row> data) {
    Map<String, Object> info = new LinkedHashMap<>(spec.info);
    info.put("measures", audit.measures());
    info.put("breakdowns", audit.breakdowns());
    info.put("files", added.size());
    info.put("bytes", added.stream().mapToLong(AddFile::size).sum());
    info.put("column_lineage", ColumnLineage.of(data.queryExecution().analyzed()));
    return Json.write(info);
  }

  /** Lets a test hold a write at a phase: {@code <folder>/<phase>.hold} makes it wait there. */
  private static final class Probe {
    private final String folder;

    Probe(String folder) {
      this.folder = folder;
    }

    void reached(String phase) {
      if (folder == null) {
        return;
      }
      try {
        Files.createFile(Paths.get(folder, phase + ".reached"));
        while (Files.exists(Paths.get(folder, phase + ".hold"))) {
          Thread.sleep(20);
        }
      } catch (java.io.IOException | InterruptedException error) {
        throw new IllegalStateException("probe at " + phase, error);
      }
    }
  }
}
