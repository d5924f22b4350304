package io.blogdata.engine;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

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
