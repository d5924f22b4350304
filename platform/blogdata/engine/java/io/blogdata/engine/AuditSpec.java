package io.blogdata.engine;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;

/**
 * The measures and audits of a write, which must hold before it is committed; the client sends it as JSON.
 *
 * <p>All expressions are SQL aggregates over the files just written, evaluated once per partition value.
 */
final class AuditSpec {
  /** Partition column of the table; null for a table that is written whole. */
  @JsonProperty("partition_column")
  String partitionColumn;

  /** Partition values the batch declares; rows of any other value are a violation. */
  @JsonProperty("partitions")
  List<String> partitions = List.of();

  /** Name to aggregate; the results are stored in the commit. */
  @JsonProperty("measures")
  Map<String, String> measures = new LinkedHashMap<>();

  /** Name to aggregate that counts bad rows; it must be zero. */
  @JsonProperty("violations")
  Map<String, String> violations = new LinkedHashMap<>();

  /** Name to expression whose values must be unique within a partition. */
  @JsonProperty("unique")
  Map<String, String> unique = new LinkedHashMap<>();

  /** Name to boolean aggregate; it must be true. */
  @JsonProperty("audits")
  Map<String, String> audits = new LinkedHashMap<>();

  /** Partition value to measure to its expected value: the row account against the layer above. */
  @JsonProperty("expected")
  Map<String, Map<String, Long>> expected = new LinkedHashMap<>();

  /** Partition value to landed file to the figures that its rows must have; no row may have another file. */
  @JsonProperty("files")
  Map<String, Map<String, List<Long>>> files = new LinkedHashMap<>();

  /** Column with the landed file of a row. */
  @JsonProperty("file_column")
  String fileColumn;

  /** Aggregates whose values {@link #files} has, in its order: lines, and their bytes. */
  @JsonProperty("file_figures")
  List<String> fileFigures = List.of();

  /** Maximum number of files of a partition that are named if they differ. */
  @JsonProperty("most_named")
  int mostNamed;

  /** Name to columns; row counts by these columns within each partition are stored in the commit. */
  @JsonProperty("breakdowns")
  Map<String, List<String>> breakdowns = new LinkedHashMap<>();

  /** Entries that the client adds to the commit's metadata, copied unchanged. */
  @JsonProperty("info")
  Map<String, Object> info = new LinkedHashMap<>();

  /** Root of the lake, whose tables the rows may be computed from if they are listed. */
  @JsonProperty("lake")
  String lake;

  /** Datasets of the lake that the rows may be computed from; null for any. */
  @JsonProperty("may_read")
  List<String> mayRead;

  /** Refuses rows that are computed from a table of the lake that is not listed. */
  void requireDeclared(ColumnLineage lineage) {
    if (mayRead == null) {
      return;
    }
    for (String path : lineage.tables()) {
      String dataset = datasetAt(path);
      if (dataset != null && !mayRead.contains(dataset)) {
        throw new NotDeclared(dataset);
      }
    }
  }

  private String datasetAt(String path) {
    String root = local(lake) + "/";
    String table = local(path);
    if (!table.startsWith(root)) {
      return null;
    }
    String[] parts = table.substring(root.length()).split("/");
    // A folder with a leading underscore has the tables of a dataset's members.
    return parts.length < 2 ? null : parts[0] + "." + (parts[1].startsWith("_") ? parts[1].substring(1) : parts[1]);
  }

  private static String local(String path) {
    return Path.getPathWithoutSchemeAndAuthority(new Path(path)).toString();
  }

  /** Thrown for rows that are computed from a dataset that their job does not declare. */
  private static final class NotDeclared extends Refusal {
    NotDeclared(String dataset) {
      super("BLOGDATA_NOT_DECLARED", "42501", dataset);
    }
  }

  /** Returns the input rows of the batch by its accounts; {@code Long.MAX_VALUE} if it has no accounts. */
  long rowsIn() {
    Map<?, ?> accounts = (Map<?, ?>) info.getOrDefault("accounts", Map.of());
    if (accounts.isEmpty()) {
      return Long.MAX_VALUE;
    }
    return accounts.values().stream()
        .mapToLong(account -> ((Number) ((Map<?, ?>) account).get("rows_in")).longValue())
        .sum();
  }
}
