package io.blogdata.engine;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.delta.tables.DeltaMergeBuilder;
import io.delta.tables.DeltaTable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.Snapshot;

/** How changes are merged into a table: their key, columns and deletions; the client sends it as JSON. */
final class Merge {
  /** Columns that identify a row; never null. */
  @JsonProperty("key")
  List<String> key = List.of();

  /** All columns of the table. */
  @JsonProperty("columns")
  List<String> columns = List.of();

  /** Boolean column of the changes that marks a row as deleted; null if the changes delete nothing. */
  @JsonProperty("deleted")
  String deleted;

  /** Table version from which the changes were computed; null accepts any version. */
  @JsonProperty("at")
  Long at;

  /** Runs Delta's MERGE. A deleted row that is not in the table is not inserted. */
  void run(SparkSession spark, String table, Dataset<Row> changes) {
    String matches =
        key.stream().map(column -> of("t", column) + " = " + of("s", column)).collect(Collectors.joining(" AND "));
    String alive = deleted == null ? "true" : "NOT " + of("s", deleted);
    Map<String, String> values = new LinkedHashMap<>();
    columns.forEach(column -> values.put("`" + column + "`", of("s", column)));
    DeltaMergeBuilder merge = DeltaTable.forPath(spark, table).as("t").merge(changes.as("s"), matches);
    if (deleted != null) {
      merge = merge.whenMatched(of("s", deleted)).delete();
    }
    merge
        .whenMatched(alive)
        .updateExpr(values)
        .whenNotMatched(alive)
        .insertExpr(values)
        .execute();
  }

  /** Refuses the merge if the changes were computed from another version of the table. */
  void require(Snapshot snapshot) {
    if (at != null) {
      TableMoved.unless(at, snapshot);
    }
  }

  private static String of(String side, String column) {
    return side + ".`" + column + "`";
  }
}
