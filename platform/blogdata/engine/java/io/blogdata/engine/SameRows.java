package io.blogdata.engine;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.RemoveFile;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;

/**
 * Audits a compaction: the files that it adds have exactly the rows of the files that it removes.
 *
 * <p>The rows are compared by their number and the sum of their hashes, whatever their order. The commit's metadata has
 * no measures, so the commit is no publication: it changes no row, and makes no reader of the table stale.
 */
final class SameRows {
  private SameRows() {}

  /** Returns the metadata of the commit; throws if the rows differ. */
  static String audited(DeltaLog log, OptimisticTransaction open, List<Action> actions, AuditSpec spec) {
    List<Object> removed = new ArrayList<>();
    List<AddFile> added = new ArrayList<>();
    for (Action action : actions) {
      if (action instanceof RemoveFile) {
        removed.add(((RemoveFile) action).path());
      } else if (action instanceof AddFile) {
        added.add((AddFile) action);
      }
    }
    List<AddFile> replaced =
        open.snapshot().allFiles().where(functions.col("path").isin(removed.toArray())).collectAsList();
    Row before = rows(AuditedWrite.uncommitted(log, open, replaced));
    Row after = rows(AuditedWrite.uncommitted(log, open, added));
    if (!before.equals(after)) {
      throw new IllegalStateException("a compaction would change the rows from " + before + " to " + after);
    }
    Map<String, Object> compacted = new LinkedHashMap<>();
    compacted.put("rows", after.get(0));
    compacted.put("files_before", replaced.size());
    compacted.put("files", added.size());
    compacted.put("bytes_before", bytes(replaced));
    compacted.put("bytes", bytes(added));
    Map<String, Object> info = new LinkedHashMap<>(spec.info);
    info.put("compacted", compacted);
    return Json.write(info);
  }

  private static Row rows(Dataset<Row> read) {
    Column[] columns = new Column[read.schema().fields().length];
    for (int at = 0; at < columns.length; at++) {
      columns[at] = hashable(read.schema().fields()[at]);
    }
    Column hash = functions.xxhash64(columns).cast("decimal(20,0)");
    return read.agg(functions.count(functions.lit(1)), functions.sum(hash)).head();
  }

  /** Spark hashes no maps and no variants: their text is hashed. */
  private static Column hashable(StructField field) {
    Column column = functions.col("`" + field.name().replace("`", "``") + "`");
    String type = field.dataType().sql();
    return type.contains("MAP<") || type.contains("VARIANT") ? functions.to_json(column) : column;
  }

  private static long bytes(List<AddFile> files) {
    return files.stream().mapToLong(AddFile::size).sum();
  }
}
