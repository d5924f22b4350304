package io.blogdata.engine;

import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Computes rows once, keeps them on the executors, and names them by a temporary view of the session (option {@code
 * view}). The option {@code of} is the number of rows that they are computed from, if it is known.
 *
 * <p>In Java, because Spark forgets the plan of kept rows: for the lineage of what is computed from them, it is
 * remembered with their RDD, which clients do not see.
 */
public final class KeptRows implements CreatableRelationProvider, DataSourceRegister {

  @Override
  public String shortName() {
    return "kept-rows";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> parameters, Dataset<Row> rows) {
    Map<String, String> options = CollectionConverters.asJava(parameters);
    long of = Long.parseLong(options.getOrDefault("of", String.valueOf(Long.MAX_VALUE)));
    SparkSession spark = ((org.apache.spark.sql.classic.Dataset<Row>) rows).sparkSession();
    FewRows.with(spark, of, rows, () -> keep(rows, options.get("view")));
    return new NoRows(context, rows.schema());
  }

  private static void keep(Dataset<Row> rows, String view) {
    ColumnLineage lineage = ColumnLineage.of(rows);
    org.apache.spark.sql.classic.Dataset<Row> kept =
        (org.apache.spark.sql.classic.Dataset<Row>) rows.localCheckpoint();
    lineage.remember((LogicalRDD) kept.queryExecution().analyzed());
    kept.createOrReplaceTempView(view);
  }
}
