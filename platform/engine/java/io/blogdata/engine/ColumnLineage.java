package io.blogdata.engine;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Finds the source columns from which each output column of an analysed plan is computed.
 *
 * <p>Only values count: a column that merely filters, joins or orders rows is not an input of the others.
 */
final class ColumnLineage {
  private final Map<ExprId, Set<ExprId>> inputs = new HashMap<>();
  private final Map<ExprId, String> sources = new HashMap<>();

  private ColumnLineage() {}

  /** Maps each output column to the sorted list of source columns ({@code path#column}) it is computed from. */
  static Map<String, List<String>> of(LogicalPlan plan) {
    ColumnLineage lineage = new ColumnLineage();
    lineage.visit(plan);
    Map<String, List<String>> result = new LinkedHashMap<>();
    for (Attribute output : CollectionConverters.asJava(plan.output())) {
      result.put(output.name(), new ArrayList<>(lineage.trace(output.exprId())));
    }
    return result;
  }

  private void visit(LogicalPlan plan) {
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      visit(child);
    }
    if (plan instanceof LeafNode) {
      leaf(plan);
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
  }

  private void leaf(LogicalPlan plan) {
    String path = path(plan);
    if (path == null) {
      return;
    }
    for (Attribute column : CollectionConverters.asJava(plan.output())) {
      sources.put(column.exprId(), path + "#" + column.name());
    }
    for (Attribute column : CollectionConverters.asJava(plan.metadataOutput())) {
      sources.put(column.exprId(), path + "#" + column.name());
    }
  }

  /** Returns the path of a table or of files; empty for a stream's batch, whose source the stream knows. */
  private static String path(LogicalPlan plan) {
    if (plan instanceof LogicalRDD) {
      return "";
    }
    if (!(plan instanceof LogicalRelation)
        || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    FileIndex files = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    if (files instanceof TahoeFileIndex) {
      return ((TahoeFileIndex) files).path().toString();
    }
    List<Path> roots = CollectionConverters.asJava(files.rootPaths());
    return roots.isEmpty() ? null : roots.get(0).getParent().toString();
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
    }
    for (Expression child : CollectionConverters.asJava(expression.children())) {
      aliases(child);
    }
  }

  private void feed(ExprId output, Expression expression) {
    if (expression instanceof AttributeReference) {
      link(output, ((AttributeReference) expression).exprId());
    }
    for (Expression child : CollectionConverters.asJava(expression.children())) {
      feed(output, child);
    }
  }

  private void link(ExprId output, ExprId input) {
    if (!output.equals(input)) {
      inputs.computeIfAbsent(output, id -> new HashSet<>()).add(input);
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
        if (sources.containsKey(id)) {
          found.add(sources.get(id));
        }
        open.addAll(inputs.getOrDefault(id, Set.of()));
      }
    }
    return found;
  }
}
