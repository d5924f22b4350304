package io.blogdata.engine;

import java.math.BigDecimal;
import java.sql.Date;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;

/** Measures the rows of an open transaction and lists all violations. */
final class Audit {
  private static final String WHOLE_TABLE = "";

  private final AuditSpec spec;
  private final Map<String, Map<String, Object>> measures = new LinkedHashMap<>();
  private final Map<String, Object> breakdowns = new LinkedHashMap<>();
  private final List<Map<String, Object>> violations = new ArrayList<>();

  private Audit(AuditSpec spec) {
    this.spec = spec;
  }

  static Audit of(Dataset<Row> written, AuditSpec spec) {
    Audit audit = new Audit(spec);
    // Independent queries on the same files: in parallel they use the cores that a small batch leaves idle.
    try (Queries queries = new Queries(2)) {
      Future<List<Row>> figures = queries.start(audit.figures(written));
      Map<String, Future<List<Row>>> repeated = new LinkedHashMap<>();
      spec.unique.forEach((name, key) -> repeated.put(name, queries.start(audit.repeated(written, key))));
      Future<List<Row>> files = spec.files.isEmpty() ? null : queries.start(audit.files(written));
      Map<String, Future<List<Row>>> breakdowns = new LinkedHashMap<>();
      spec.breakdowns.forEach((name, by) -> breakdowns.put(name, queries.start(audit.breakdown(written, by))));
      audit.judge(Queries.rows(figures));
      repeated.forEach((name, rows) -> audit.judgeUnique(name, Queries.rows(rows)));
      audit.compareWithExpected();
      if (files != null) {
        audit.compareFiles(Queries.rows(files));
      }
      breakdowns.forEach((name, rows) -> audit.breakdowns.put(name, cells(Queries.rows(rows))));
    }
    return audit;
  }

  /** Returns the audit of a write without rows: every declared partition is empty. */
  static Audit ofNothing(AuditSpec spec) {
    Audit audit = new Audit(spec);
    audit.judge(List.of());
    spec.breakdowns.keySet().forEach(name -> audit.breakdowns.put(name, List.of()));
    return audit;
  }

  List<Map<String, Object>> violations() {
    return violations;
  }

  Map<String, Map<String, Object>> measures() {
    return measures;
  }

  Map<String, Object> breakdowns() {
    return breakdowns;
  }

  private Dataset<Row> figures(Dataset<Row> written) {
    List<Column> aggregates = new ArrayList<>();
    spec.measures.forEach((name, sql) -> aggregates.add(functions.expr(sql).as(name)));
    spec.violations.forEach((name, sql) -> aggregates.add(functions.expr(sql).as(name)));
    spec.audits.forEach((name, sql) -> aggregates.add(functions.expr(sql).as(name)));
    Column first = aggregates.get(0);
    Column[] rest = aggregates.subList(1, aggregates.size()).toArray(new Column[0]);
    return written.groupBy(partition()).agg(first, rest);
  }

  /**
   * Counts the rows beyond the first of each key, per partition. A separate query: a distinct count among the other
   * aggregates would carry their buffers with every key.
   */
  private Dataset<Row> repeated(Dataset<Row> written, String key) {
    Stream<Column> keys = Stream.of(functions.expr(key).as("key"));
    Column[] by = Stream.concat(Arrays.stream(partition()), keys).toArray(Column[]::new);
    Dataset<Row> counted = written.groupBy(by).agg(functions.count(functions.lit(1)).as("rows"));
    return counted
        .where(functions.col("rows").gt(1))
        .groupBy(partition())
        .agg(functions.sum(functions.col("rows").minus(1)));
  }

  private Column[] partition() {
    return spec.partitionColumn == null ? new Column[0] : new Column[] {functions.col(spec.partitionColumn)};
  }

  private void judge(List<Row> figures) {
    for (String declared : declaredPartitions()) {
      measures.put(declared, emptyPartition());
    }
    for (Row row : figures) {
      String partition = partitionOf(row);
      if (!measures.containsKey(partition)) {
        violation("partition_is_declared", partition, "rows of a partition this write did not declare", null);
      }
      judge(partition, row, partition().length);
    }
  }

  private void judgeUnique(String name, List<Row> repeated) {
    for (Row row : repeated) {
      Object rows = row.get(partition().length);
      if (rows != null) {
        violation(name, partitionOf(row), "rows that are not the first of " + spec.unique.get(name), rows);
      }
    }
  }

  private String partitionOf(Row row) {
    return spec.partitionColumn == null ? WHOLE_TABLE : String.valueOf(row.get(0));
  }

  private List<String> declaredPartitions() {
    return spec.partitionColumn == null ? List.of(WHOLE_TABLE) : spec.partitions;
  }

  /** Returns the measures of a partition without rows: zero for counts and sums, null for all others. */
  private Map<String, Object> emptyPartition() {
    Map<String, Object> figures = new LinkedHashMap<>();
    spec.measures.forEach((name, sql) -> figures.put(name, isCount(sql) ? 0L : null));
    return figures;
  }

  private static boolean isCount(String sql) {
    return sql.startsWith("count") || sql.startsWith("sum");
  }

  private void judge(String partition, Row row, int offset) {
    int at = offset;
    Map<String, Object> figures = new LinkedHashMap<>();
    for (Map.Entry<String, String> measure : spec.measures.entrySet()) {
      Object value = plain(row.get(at++));
      figures.put(measure.getKey(), value == null && isCount(measure.getValue()) ? 0L : value);
    }
    measures.put(partition, figures);
    for (Map.Entry<String, String> rule : spec.violations.entrySet()) {
      Object rows = row.get(at++);
      if (rows != null && ((Number) rows).longValue() != 0) {
        violation(rule.getKey(), partition, rule.getValue(), rows);
      }
    }
    for (Map.Entry<String, String> condition : spec.audits.entrySet()) {
      Object value = row.get(at++);
      if (!Boolean.TRUE.equals(value)) {
        violation(condition.getKey(), partition, condition.getValue(), value);
      }
    }
  }

  private void compareWithExpected() {
    spec.expected.forEach(
        (partition, figures) ->
            figures.forEach(
                (name, expected) -> {
                  Object actual = measures.getOrDefault(partition, Map.of()).get(name);
                  Long counted = actual instanceof Number ? ((Number) actual).longValue() : null;
                  if (!Objects.equals(counted, expected)) {
                    violation("account." + name, partition, "expected " + expected, actual);
                  }
                }));
  }

  private Dataset<Row> files(Dataset<Row> written) {
    Column[] by =
        Stream.concat(Arrays.stream(partition()), Stream.of(functions.col(spec.fileColumn))).toArray(Column[]::new);
    Column[] figures = spec.fileFigures.stream().map(functions::expr).toArray(Column[]::new);
    return written.groupBy(by).agg(figures[0], Arrays.copyOfRange(figures, 1, figures.length));
  }

  /** Compares each file by itself: of two files, one may have lost the rows that the other has twice. */
  private void compareFiles(List<Row> rows) {
    List<Long> nothing = Collections.nCopies(spec.fileFigures.size(), 0L);
    Map<String, Map<String, List<Long>>> found = new LinkedHashMap<>();
    for (Row row : rows) {
      int at = partition().length;
      List<Long> figures = new ArrayList<>();
      for (int i = at + 1; i < row.size(); i++) {
        figures.add(((Number) row.get(i)).longValue());
      }
      found.computeIfAbsent(partitionOf(row), key -> new LinkedHashMap<>()).put(row.getString(at), figures);
    }
    spec.files.forEach(
        (partition, expected) -> {
          Map<String, List<Long>> there = found.getOrDefault(partition, Map.of());
          Set<String> all = new TreeSet<>(expected.keySet());
          all.addAll(there.keySet());
          all.removeIf(file -> there.getOrDefault(file, nothing).equals(expected.getOrDefault(file, nothing)));
          for (String file : all.stream().limit(spec.mostNamed).toList()) {
            violation(
                "account.file",
                partition,
                "lines and bytes of " + file + ", of " + all.size() + " files that differ: expected "
                    + shown(expected.getOrDefault(file, nothing)),
                shown(there.getOrDefault(file, nothing)));
          }
        });
  }

  private static String shown(List<Long> figures) {
    return figures.stream().map(String::valueOf).collect(Collectors.joining(" and "));
  }

  private Dataset<Row> breakdown(Dataset<Row> written, List<String> columns) {
    List<Column> keys = new ArrayList<>(Arrays.asList(partition()));
    for (String column : columns) {
      keys.add(functions.expr(column).as("by" + keys.size()));
    }
    // Selected first, because a grouping key may not explode an array.
    Dataset<Row> selected = written.select(keys.toArray(new Column[0]));
    Column[] by = Arrays.stream(selected.columns()).map(functions::col).toArray(Column[]::new);
    return selected.groupBy(by).agg(functions.count(functions.lit(1)));
  }

  private static List<Object> cells(List<Row> rows) {
    List<Object> found = new ArrayList<>();
    for (Row row : rows) {
      List<Object> cells = new ArrayList<>();
      for (int i = 0; i < row.size(); i++) {
        cells.add(plain(row.get(i)));
      }
      found.add(cells);
    }
    return found;
  }

  private void violation(String rule, String partition, String detail, Object found) {
    Map<String, Object> entry = new LinkedHashMap<>();
    entry.put("rule", rule);
    entry.put("partition", partition);
    entry.put("detail", detail);
    entry.put("found", plain(found));
    violations.add(entry);
  }

  private static Object plain(Object value) {
    if (value instanceof BigDecimal) {
      return ((BigDecimal) value).doubleValue();
    }
    if (value instanceof Timestamp) {
      return ((Timestamp) value).toInstant().toString();
    }
    if (value instanceof Date) {
      return value.toString();
    }
    if (value == null || value instanceof Number || value instanceof Boolean) {
      return value;
    }
    return value.toString();
  }
}
