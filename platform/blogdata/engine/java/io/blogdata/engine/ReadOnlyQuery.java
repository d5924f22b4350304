package io.blogdata.engine;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.api.python.PythonSQLUtils$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedGenerator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.DescribeColumn;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.command.DescribeQueryCommand;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Judges whether a statement only reads the given temporary views; everything that is not known to do so is refused.
 *
 * <p>Two plans are judged. The parsed one before it is analysed, because analysis itself reads files and runs code: it
 * may hold the listed nodes and expressions, functions of the listed groups, and relations with a name of one part. The
 * analysed one then shows what these names are: a leaf with rows lies within one of the given views, or has no rows of
 * its own. Both are walked through every field, so that no plan or expression is hidden from the judgement.
 *
 * <p>Options: {@code query} and {@code views} (names, separated by spaces). With {@code views_only} the statement learns
 * nothing of what is below the views: no plans, which name tables and columns, and no names of files. The relation is
 * never read: its schema is empty.
 *
 * <p>In Java, because only Spark's own parser and analyser know what a statement does, and clients reach them only by
 * statements that are run.
 */
public final class ReadOnlyQuery implements RelationProvider, DataSourceRegister {
  private static final Set<String> NODES =
      words(
          "Aggregate AsOfJoin CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit"
              + " Intersect Join LateralJoin LimitAll LocalLimit LocalRelation NearestByJoin Offset OneRowRelation"
              + " PipeOperator Pivot Project Range RebalancePartitions Repartition RepartitionByExpression ResolvedHint"
              + " ResolvedInlineTable Sample Sort SubqueryAlias Union UnionLoop UnionLoopRef Unpivot UnresolvedHaving"
              + " UnresolvedHint UnresolvedInlineTable UnresolvedQualify UnresolvedRelation"
              + " UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction UnresolvedWith"
              + " View Window WithCTE WithWindowDefinition");

  /** Expressions of the grammar; those of functions and operators are known by their groups. */
  private static final Set<String> EXPRESSIONS =
      words(
          "AggregateExpression Alias Ascending AttributeReference CaseWhen Collate CreateNamedStruct CurrentRow Exists"
              + " GroupingSets Cube Rollup InSubquery LambdaFunction LateralSubquery LikeAll LikeAny ListQuery Literal"
              + " MultiAlias NamePlaceholder NamedArgumentExpression NotLikeAll NotLikeAny OuterReference"
              + " PipeExpression ScalarSubquery SemiStructuredExtract SortOrder SpecifiedWindowFrame StringTrim"
              + " StringTrimBoth StringTrimLeft StringTrimRight TimestampAddInterval TimestampAdd TimestampDiff"
              + " UnboundedFollowing UnboundedPreceding UnresolvedAlias UnresolvedAttribute UnresolvedCollation"
              + " UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedNamedLambdaVariable"
              + " UnresolvedOrdinal UnresolvedPipeAggregateOrdinal UnresolvedRegex UnresolvedStar"
              + " UnresolvedStarExceptOrReplace UnresolvedWithinGroup UnspecifiedFrame UnresolvedWindowExpression"
              + " WindowExpression WindowSpecDefinition WindowSpecReference");

  /** Spark's groups of functions that compute from their arguments alone. */
  private static final Set<String> GROUPS =
      words(
          "agg_funcs array_funcs bitwise_funcs collection_funcs conditional_funcs conversion_funcs csv_funcs"
              + " datetime_funcs generator_funcs hash_funcs json_funcs lambda_funcs map_funcs math_funcs"
              + " predicate_funcs sketch_funcs st_funcs string_funcs struct_funcs url_funcs variant_funcs vector_funcs"
              + " window_funcs");

  /** Functions of other groups that do so, too; beside them these groups call Java methods and read files. */
  private static final Set<String> FUNCTIONS =
      words(
          "bitmap_bit_position bitmap_bucket_number bitmap_count input_file_name monotonically_increasing_id range"
              + " spark_partition_id typeof uuid version");

  private static final String FILE_NAME = "input_file_name";
  private static final String SUBSTITUTION = "spark.sql.variable.substitute";

  @Override
  public String shortName() {
    return "read-only-query";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(CollectionConverters.asJava(parameters));
    SparkSession spark = (SparkSession) context.sparkSession();
    if (Boolean.parseBoolean(spark.conf().get(SUBSTITUTION))) {
      // The parser replaces ${env:…} by what it names, within literals, too.
      throw refused("a session with " + SUBSTITUTION);
    }
    Set<String> views = words(options.get("views"));
    boolean viewsOnly = Boolean.parseBoolean(options.get("views_only"));
    new Judge(spark, views, viewsOnly).statement(options.get("query"));
    return new NoRows(context, new StructType());
  }

  private static Set<String> words(String text) {
    return new HashSet<>(Arrays.asList(text.split(" ")));
  }

  /** Makes the error of a statement that does something else than to read, or reads something else. */
  private static IllegalArgumentException refused(String found) {
    return new IllegalArgumentException("[BLOGDATA_NOT_READ_ONLY] " + found);
  }

  /** Rethrows an error unchecked, though it is a checked one. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E unchanged(Throwable error) throws E {
    throw (E) error;
  }

  private static final class Judge {
    private final SparkSession spark;
    private final Set<String> views;
    private final boolean viewsOnly;
    private final Set<String> functions = new HashSet<>();
    private final Set<String> classes = new HashSet<>();

    Judge(SparkSession spark, Set<String> views, boolean viewsOnly) {
      this.spark = spark;
      this.views = views;
      this.viewsOnly = viewsOnly;
      for (ExpressionInfo known : PythonSQLUtils$.MODULE$.listBuiltinFunctionInfos()) {
        if (GROUPS.contains(known.getGroup()) || FUNCTIONS.contains(known.getName())) {
          functions.add(known.getName());
          classes.add(known.getClassName());
        }
      }
      if (viewsOnly) {
        functions.remove(FILE_NAME);
      }
    }

    void statement(String text) {
      LogicalPlan plan = parsed(text);
      if (viewsOnly && plan instanceof ExplainCommand) {
        throw refused("a plan, which shows what is below the tables that this role sees");
      }
      if (plan instanceof ExplainCommand) {
        query(((ExplainCommand) plan).logicalPlan());
      } else if (plan instanceof DescribeQueryCommand) {
        query(((DescribeQueryCommand) plan).plan());
      } else if (plan instanceof DescribeRelation) {
        described(((DescribeRelation) plan).relation());
      } else if (plan instanceof DescribeColumn) {
        described(((DescribeColumn) plan).relation());
      } else {
        query(plan);
      }
    }

    private LogicalPlan parsed(String text) {
      try {
        return spark.sessionState().sqlParser().parsePlan(text);
      } catch (ParseException error) {
        throw ReadOnlyQuery.<RuntimeException>unchanged(error);
      }
    }

    private void described(LogicalPlan relation) {
      if (!(relation instanceof UnresolvedTableOrView)) {
        throw refused(name(relation));
      }
      List<String> parts = CollectionConverters.asJava(((UnresolvedTableOrView) relation).multipartIdentifier());
      if (parts.size() != 1 || !declared(parts.get(0))) {
        throw refused("the relation " + String.join(".", parts));
      }
    }

    private void query(LogicalPlan parsed) {
      visit(parsed, false);
      visit(spark.sessionState().executePlan(parsed, CommandExecutionMode.SKIP()).analyzed(), true);
    }

    private void visit(Object found, boolean analysed) {
      if (found instanceof LogicalPlan) {
        node((LogicalPlan) found);
        if (found instanceof View) {
          return;
        }
      } else if (found instanceof Expression) {
        if (analysed) {
          computed((Expression) found);
        } else {
          written((Expression) found);
        }
      }
      if (found instanceof scala.collection.Iterable) {
        for (Object item : CollectionConverters.asJava((scala.collection.Iterable<?>) found)) {
          visit(item, analysed);
        }
      } else if (found instanceof Product) {
        for (Object item : CollectionConverters.asJava(((Product) found).productIterator().toList())) {
          visit(item, analysed);
        }
      }
    }

    private void node(LogicalPlan found) {
      if (!NODES.contains(name(found))) {
        throw refused(name(found));
      }
      if (found instanceof UnresolvedRelation) {
        UnresolvedRelation relation = (UnresolvedRelation) found;
        List<String> parts = CollectionConverters.asJava(relation.multipartIdentifier());
        if (parts.size() != 1 || relation.isStreaming()) {
          throw refused("the relation " + String.join(".", parts));
        }
      } else if (found instanceof UnresolvedTableValuedFunction) {
        function(CollectionConverters.asJava(((UnresolvedTableValuedFunction) found).name()));
      } else if (found instanceof View) {
        View view = (View) found;
        if (!view.isTempView() || !declared(view.desc().identifier().table())) {
          throw refused("the view " + view.desc().identifier().table());
        }
      }
    }

    /** Judges an expression of the statement as it was written. */
    private void written(Expression found) {
      if (!EXPRESSIONS.contains(name(found)) && !classes.contains(found.getClass().getName())) {
        throw refused("the expression " + name(found));
      }
      if (found instanceof UnresolvedFunction) {
        function(CollectionConverters.asJava(((UnresolvedFunction) found).nameParts()));
      } else if (found instanceof UnresolvedGenerator) {
        function(List.of(((UnresolvedGenerator) found).name().funcName()));
      }
    }

    /** Judges what Spark has made of it: of functions that were judged by name, no other can come. */
    private void computed(Expression found) {
      if (found instanceof UserDefinedExpression || found instanceof CallMethodViaReflection) {
        throw refused("the expression " + name(found));
      }
    }

    private void function(List<String> parts) {
      if (parts.size() != 1 || !functions.contains(parts.get(0).toLowerCase(Locale.ROOT))) {
        throw refused("the function " + String.join(".", parts));
      }
    }

    private boolean declared(String view) {
      return views.contains(view.toLowerCase(Locale.ROOT));
    }

    private static String name(Object found) {
      return found.getClass().getSimpleName().replace("$", "");
    }
  }
}
