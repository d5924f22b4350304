package io.blogdata.engine;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Finds the source columns ({@code path#column}) that an analysed plan reads, and those that each output column is
 * computed from.
 *
 * <p>For an output column only values count: a column that merely filters, joins or orders rows is not its source. It
 * is read all the same. The path is empty for what the plan does not say where it is from: a stream's batch, whose
 * source the stream knows, or anything unknown.
 *
 * <p>In Java, because Spark gives clients the analysed plan as a text only, without the identities of columns.
 */
final class ColumnLineage {
  /** What kept rows were computed from, as long as Spark has them: a plan on top of them ends there. */
  private static final Map<RDD<?>, ColumnLineage> KEPT = Collections.synchronizedMap(new WeakHashMap<>());

  /** What the alias of landed lines begins with ({@code lines.py}); the folder of the first file follows. */
  private static final String LANDED = "landed:";

  /** What the alias of files of a table begins with ({@code reads.py}); the table's path follows. */
  private static final String TABLE = "table:";

  private static final Set<String> POSITION = Set.of("raw", "source_offset", "source_file");

  private final Map<ExprId, Set<ExprId>> inputs = new HashMap<>();
  private final Map<ExprId, Set<String>> sources = new HashMap<>();
  private final Map<Long, List<Attribute>> commonTables = new HashMap<>();
  private final Set<ExprId> used = new HashSet<>();
  private final Set<String> usedBelow = new TreeSet<>();
  private final List<Attribute> outputs;

  private ColumnLineage(LogicalPlan plan) {
    outputs = CollectionConverters.asJava(plan.output());
    visit(plan);
  }

  static ColumnLineage of(Dataset<Row> rows) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().analyzed();
    // What is counted of the rows is no reading of the columns.
    return new ColumnLineage(plan instanceof CollectMetrics ? ((CollectMetrics) plan).child() : plan);
  }

  /** Remembers what rows were computed from that are kept by an RDD, with the same columns in the same order. */
  void remember(LogicalRDD kept) {
    KEPT.put(kept.rdd(), this);
  }

  /** Returns the sources of each output column, all columns that are read, and all tables, even without a column. */
  Map<String, Object> described() {
    Map<String, Set<String>> columns = new LinkedHashMap<>();
    Set<String> read = new TreeSet<>(usedBelow);
    used.forEach(id -> read.addAll(trace(id)));
    for (Attribute output : outputs) {
      columns.put(output.name(), trace(output.exprId()));
      read.addAll(trace(output.exprId()));
    }
    return Map.of("column_lineage", columns, "columns_read", read, "tables", tables());
  }

  private Set<String> tables() {
    Set<String> columns = new TreeSet<>(usedBelow);
    sources.values().forEach(columns::addAll);
    Set<String> paths = new TreeSet<>();
    columns.forEach(column -> paths.add(column.substring(0, column.lastIndexOf('#'))));
    paths.remove("");
    return paths;
  }

  private void visit(LogicalPlan plan) {
    if (plan instanceof SubqueryAlias && named((SubqueryAlias) plan)) {
      return;
    }
    List<LogicalPlan> children = CollectionConverters.asJava(plan.children());
    children.forEach(this::visit);
    if (plan instanceof LeafNode) {
      leaf(plan);
      return;
    }
    if (plan instanceof CTERelationDef) {
      commonTables.put(((CTERelationDef) plan).id(), CollectionConverters.asJava(plan.output()));
    } else if (plan instanceof Union) {
      byPosition(plan.output(), plan.children());
    } else if (plan instanceof Generate) {
      Generate generate = (Generate) plan;
      for (Attribute output : CollectionConverters.asJava(generate.generatorOutput())) {
        feed(output.exprId(), (Expression) generate.generator());
      }
    } else if (plan instanceof Expand) {
      expand((Expand) plan);
    }
    for (Expression expression : CollectionConverters.asJava(plan.expressions())) {
      aliases(expression);
    }
    if (plan instanceof Aggregate) {
      CollectionConverters.asJava(((Aggregate) plan).groupingExpressions()).forEach(this::use);
    } else if (!(plan instanceof Project || plan instanceof Window || plan instanceof Expand)) {
      CollectionConverters.asJava(plan.expressions()).forEach(this::use);
    }
    opaque(plan, children);
  }

  /** Has columns that a function makes in a way no plan shows (of whole batches, say) depend on all columns it gets. */
  private void opaque(LogicalPlan plan, List<LogicalPlan> children) {
    Set<ExprId> below = new HashSet<>();
    for (LogicalPlan child : children) {
      CollectionConverters.asJava(child.output()).forEach(column -> below.add(column.exprId()));
    }
    for (Attribute output : CollectionConverters.asJava(plan.output())) {
      ExprId id = output.exprId();
      if (!below.contains(id) && !inputs.containsKey(id)) {
        below.forEach(column -> link(id, column));
      }
    }
  }

  /**
   * Takes rows for those of the place that their alias names, however they are read. What a reader has found in landed
   * lines comes from the lines and their file.
   */
  private boolean named(SubqueryAlias rows) {
    boolean landed = rows.alias().startsWith(LANDED);
    if (!landed && !rows.alias().startsWith(TABLE)) {
      return false;
    }
    String place = rows.alias().substring((landed ? LANDED : TABLE).length());
    List<Attribute> columns = new ArrayList<>(CollectionConverters.asJava(rows.output()));
    columns.addAll(CollectionConverters.asJava(rows.metadataOutput()));
    for (Attribute column : columns) {
      String name = column.name();
      boolean asItIs = !landed || POSITION.contains(name);
      sources.put(
          column.exprId(), asItIs ? Set.of(place + "#" + name) : Set.of(place + "#raw", place + "#source_file"));
    }
    return true;
  }

  private void leaf(LogicalPlan plan) {
    if (plan instanceof LocalRelation || plan instanceof OneRowRelation || plan instanceof Range) {
      return;
    }
    List<Attribute> columns = CollectionConverters.asJava(plan.output());
    if (plan instanceof CTERelationRef) {
      // Defined before it is used: WithCTE has its definitions as first children.
      List<Attribute> defined = commonTables.get(((CTERelationRef) plan).cteId());
      for (int i = 0; i < columns.size(); i++) {
        link(columns.get(i).exprId(), defined.get(i).exprId());
      }
      return;
    }
    ColumnLineage kept = plan instanceof LogicalRDD ? KEPT.get(((LogicalRDD) plan).rdd()) : null;
    if (kept != null) {
      kept.used.forEach(id -> usedBelow.addAll(kept.trace(id)));
      usedBelow.addAll(kept.usedBelow);
      for (int i = 0; i < columns.size(); i++) {
        sources.put(columns.get(i).exprId(), kept.trace(kept.outputs.get(i).exprId()));
      }
      return;
    }
    String path = path(plan);
    if (path.isEmpty()) {
      // Even if no column of it is used, whatever chose its rows is unknown.
      usedBelow.add("#");
    }
    for (Attribute column : columns) {
      sources.put(column.exprId(), Set.of(path + "#" + column.name()));
    }
    for (Attribute column : CollectionConverters.asJava(plan.metadataOutput())) {
      sources.put(column.exprId(), Set.of(path + "#" + column.name()));
    }
  }

  private static String path(LogicalPlan plan) {
    if (!(plan instanceof LogicalRelation)) {
      return "";
    }
    if (!(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return "";
    }
    FileIndex files = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    if (files instanceof TahoeFileIndex) {
      return ((TahoeFileIndex) files).path().toString();
    }
    List<Path> roots = CollectionConverters.asJava(files.rootPaths());
    return roots.isEmpty() ? "" : roots.get(0).getParent().toString();
  }

  private void byPosition(
      scala.collection.immutable.Seq<Attribute> outputs, scala.collection.immutable.Seq<LogicalPlan> children) {
    List<Attribute> united = CollectionConverters.asJava(outputs);
    for (LogicalPlan child : CollectionConverters.asJava(children)) {
      List<Attribute> columns = CollectionConverters.asJava(child.output());
      for (int i = 0; i < united.size(); i++) {
        link(united.get(i).exprId(), columns.get(i).exprId());
      }
    }
  }

  private void expand(Expand plan) {
    List<Attribute> outputs = CollectionConverters.asJava(plan.output());
    for (scala.collection.immutable.Seq<Expression> projection : CollectionConverters.asJava(plan.projections())) {
      List<Expression> row = CollectionConverters.asJava(projection);
      for (int i = 0; i < outputs.size(); i++) {
        feed(outputs.get(i).exprId(), row.get(i));
      }
    }
  }

  private void aliases(Expression expression) {
    if (expression instanceof Alias) {
      feed(((Alias) expression).exprId(), ((Alias) expression).child());
    } else if (expression instanceof SubqueryExpression) {
      visit(((SubqueryExpression) expression).plan());
    }
    for (Expression child : CollectionConverters.asJava(expression.children())) {
      aliases(child);
    }
  }

  private void use(Expression expression) {
    columns(expression).forEach(used::add);
  }

  private void feed(ExprId output, Expression expression) {
    inputs.computeIfAbsent(output, id -> new HashSet<>());
    columns(expression).forEach(input -> link(output, input));
  }

  private static Set<ExprId> columns(Expression expression) {
    Set<ExprId> found = new HashSet<>();
    if (expression instanceof AttributeReference) {
      found.add(((AttributeReference) expression).exprId());
    } else if (expression instanceof SubqueryExpression) {
      LogicalPlan plan = ((SubqueryExpression) expression).plan();
      CollectionConverters.asJava(plan.output()).forEach(column -> found.add(column.exprId()));
    }
    for (Expression child : CollectionConverters.asJava(expression.children())) {
      found.addAll(columns(child));
    }
    return found;
  }

  private void link(ExprId output, ExprId input) {
    Set<ExprId> known = inputs.computeIfAbsent(output, id -> new HashSet<>());
    if (!output.equals(input)) {
      known.add(input);
    }
  }

  private Set<String> trace(ExprId output) {
    Set<String> found = new TreeSet<>();
    Set<ExprId> seen = new HashSet<>();
    Deque<ExprId> open = new ArrayDeque<>();
    open.add(output);
    while (!open.isEmpty()) {
      ExprId id = open.poll();
      if (seen.add(id)) {
        found.addAll(sources.getOrDefault(id, Set.of()));
        open.addAll(inputs.getOrDefault(id, Set.of()));
      }
    }
    return found;
  }
}
