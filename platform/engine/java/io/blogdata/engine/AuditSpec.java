package io.blogdata.engine;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a write must measure and satisfy before it may be committed; the client sends it as JSON.
 *
 * <p>All expressions are SQL aggregates over the files just written, evaluated once per partition value.
 */
final class AuditSpec {
  /** Column whose values are the partitions of this batch; null for a table that is written whole. */
  @JsonProperty("partition_column")
  String partitionColumn;

  /** Partition values the batch declares; rows of any other value are a violation. */
  @JsonProperty("partitions")
  List<String> partitions = List.of();

  /** Name to aggregate: figures kept in the commit. */
  @JsonProperty("measures")
  Map<String, String> measures = new LinkedHashMap<>();

  /** Name to aggregate that counts bad rows: must be zero. */
  @JsonProperty("violations")
  Map<String, String> violations = new LinkedHashMap<>();

  /** Name to the expression whose values must differ within a partition. */
  @JsonProperty("unique")
  Map<String, String> unique = new LinkedHashMap<>();

  /** Name to boolean aggregate: must be true. */
  @JsonProperty("audits")
  Map<String, String> audits = new LinkedHashMap<>();

  /** Partition value to measure to the figure it must have: the row account against the layer above. */
  @JsonProperty("expected")
  Map<String, Map<String, Long>> expected = new LinkedHashMap<>();

  /** Name to columns: row counts by these columns within a partition, kept in the commit. */
  @JsonProperty("breakdowns")
  Map<String, List<String>> breakdowns = new LinkedHashMap<>();

  /** What the client wants in the commit's metadata, untouched. */
  @JsonProperty("info")
  Map<String, Object> info = new LinkedHashMap<>();

  /** Rows the batch is computed from, as its accounts say; as many as there can be when it has none. */
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
