package io.blogdata.engine;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOptions;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.RemoveFile;
import org.apache.spark.sql.delta.actions.SetTransaction;
import org.apache.spark.sql.delta.commands.WriteIntoDelta;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes into a Delta table so that only audited rows become visible.
 *
 * <p>One of Delta's own commands runs in an {@link AuditedTransaction}: before the command commits, the audits read the
 * files it has written. Only if all audits hold is the transaction committed, with the measures in the commit's
 * metadata. After a failed audit or a killed process the log is unchanged, and vacuum removes the unreferenced files.
 *
 * <p>Options: {@code path}, {@code audit} ({@link AuditSpec} as JSON), {@code txnAppId} and {@code txnVersion}. At most
 * one of: {@code replaceWhere} to overwrite rows, {@code merge} ({@link Merge} as JSON) to change some, or {@code
 * statement} for a Delta SQL statement, which ignores the given rows, and with {@code same_rows} may change none
 * ({@link SameRows}). {@code kept} (partition values, a list as JSON) are partitions to which an overwrite only adds
 * rows; they are audited with those they have. {@code at} is the required table version. {@code turn} is the batch's number among all batches of the table; the write is refused if another batch has taken it.
 * {@code companions} (a list of {@link Companion} as JSON) are written and audited before the commit, and recorded in
 * its metadata. {@code probe} names a folder for stepping through the phases in tests.
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
    Probe probe = new Probe(options.get("probe"), "");
    org.apache.spark.sql.classic.Dataset<Row> data = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    SparkSession spark = data.sparkSession();
    String table = required(options, "path");
    DeltaLog log = DeltaLog.forTable(spark, new Path(table));
    // An appending writer uses one id for all of its batches, and Delta must remember it after any pause. On a table
    // with a transaction retention Delta drops an id without a time at once, so its time is one that never expires.
    long lastUsed = mode == SaveMode.Append ? Long.MAX_VALUE : System.currentTimeMillis();
    SetTransaction once =
        new SetTransaction(
            required(options, "txnAppId"),
            Long.parseLong(required(options, "txnVersion")),
            Option.apply((Object) lastUsed));
    Merge merge = options.containsKey("merge") ? Json.read(options.get("merge"), Merge.class) : null;
    String statement = options.get("statement");
    Set<String> kept =
        options.containsKey("kept") ? Set.of(Json.read(options.get("kept"), String[].class)) : Set.of();
    String at = options.get("at");
    SetTransaction turn =
        options.containsKey("turn")
            ? new SetTransaction(
                String.valueOf(spec.info.get("dataset")),
                Long.parseLong(options.get("turn")),
                Option.apply((Object) lastUsed))
            : null;
    boolean whole = merge != null || statement != null;
    boolean same = options.containsKey("same_rows");
    Companion[] companions =
        options.containsKey("companions") ? Json.read(options.get("companions"), Companion[].class) : new Companion[0];
    Runnable command =
        () -> {
          if (merge != null) {
            merge.run(spark, table, data);
          } else if (statement != null) {
            spark.sql(statement);
          } else {
            overwrite(spark, log, mode, parameters.removed("txnAppId").removed("txnVersion"), data);
          }
        };
    try {
      Begin.with(
          log,
          begun -> {
            AuditedTransaction transaction =
                AuditedTransaction.insteadOf(
                    begun,
                    (open, actions) ->
                        same
                            ? SameRows.audited(log, open, actions, spec)
                            : audited(log, open, actions, spec, data, whole, kept, companions, probe),
                    once,
                    turn,
                    probe);
            if (merge != null) {
              merge.require(transaction.snapshot());
            }
            if (at != null) {
              TableMoved.unless(Long.parseLong(at), transaction.snapshot());
            }
            return transaction;
          },
          () -> FewRows.with(spark, spec.rowsIn(), data, whole ? log : null, command));
    } catch (AuditedTransaction.Repeated repetition) {
      // The batch is already published: there is nothing to do.
    }
    return Scala.relation(context, data.schema());
  }

  static void overwrite(
      SparkSession spark,
      DeltaLog log,
      SaveMode mode,
      scala.collection.immutable.Map<String, String> parameters,
      org.apache.spark.sql.classic.Dataset<Row> data) {
    new WriteIntoDelta(
            log,
            mode,
            new DeltaOptions(parameters, spark.sessionState().conf()),
            Scala.seq(List.of()),
            scala.collection.immutable.Map$.MODULE$.empty(),
            data,
            Option.empty(),
            Option.empty(),
            false)
        .run(spark);
  }

  private static String required(Map<String, String> options, String name) {
    String value = options.get(name);
    if (value == null) {
      throw new IllegalArgumentException("audited-delta needs the option '" + name + "'");
    }
    return value;
  }

  /**
   * Audits an open transaction, either the partitions that an overwrite writes or the whole table after it; returns the
   * metadata. The actions no longer remove the files that are kept.
   */
  private static String audited(
      DeltaLog log,
      OptimisticTransaction open,
      List<Action> actions,
      AuditSpec spec,
      org.apache.spark.sql.classic.Dataset<Row> data,
      boolean whole,
      Set<String> kept,
      Companion[] companions,
      Probe probe) {
    List<AddFile> added = new ArrayList<>();
    Map<String, AddFile> files = new LinkedHashMap<>();
    if (!kept.isEmpty()) {
      keep(kept, open, actions).forEach(file -> files.put(file.path(), file));
    }
    if (whole) {
      for (AddFile file : open.snapshot().allFiles().collectAsList()) {
        files.put(file.path(), file);
      }
      for (Action action : actions) {
        if (action instanceof RemoveFile) {
          files.remove(((RemoveFile) action).path());
        }
      }
    }
    for (Action action : actions) {
      if (action instanceof AddFile) {
        added.add((AddFile) action);
        files.put(((AddFile) action).path(), (AddFile) action);
      }
    }
    ColumnLineage lineage = ColumnLineage.of(data);
    spec.requireDeclared(lineage);
    Audit audit = Audit.of(uncommitted(log, open, new ArrayList<>(files.values())), spec);
    if (!audit.violations().isEmpty()) {
      throw new AuditFailed(spec.info.get("dataset"), log.dataPath().toString(), audit.violations());
    }
    Map<String, Object> info = new LinkedHashMap<>(spec.info);
    info.put("measures", audit.measures());
    info.put("breakdowns", audit.breakdowns());
    info.put("files", added.size());
    info.put("bytes", added.stream().mapToLong(AddFile::size).sum());
    lineage.describe(info);
    if (companions.length > 0) {
      Map<String, Object> held = new LinkedHashMap<>();
      for (Companion companion : companions) {
        held.put(
            String.valueOf(companion.spec.info.get("dataset")),
            companion.hold(data.sparkSession(), audit.measures(), probe.ofCompanion()));
      }
      info.put("companions", held);
    }
    return Json.write(info);
  }

  /** Takes back the removal of the files of some partitions, and returns these files. */
  private static List<AddFile> keep(Set<String> partitions, OptimisticTransaction open, List<Action> actions) {
    List<Object> paths = new ArrayList<>();
    actions.removeIf(
        action -> {
          if (!(action instanceof RemoveFile)) {
            return false;
          }
          RemoveFile removed = (RemoveFile) action;
          Map<String, String> of = CollectionConverters.asJava(removed.partitionValues());
          return !Collections.disjoint(of.values(), partitions) && paths.add(removed.path());
        });
    return open.snapshot().allFiles().where(functions.col("path").isin(paths.toArray())).collectAsList();
  }

  /** Reads uncommitted files through the transaction's snapshot, so column mapping and partition values apply. */
  static Dataset<Row> uncommitted(DeltaLog log, OptimisticTransaction open, List<AddFile> files) {
    return log.createDataFrame(open.snapshot(), Scala.seq(files), false, Option.empty());
  }
}
