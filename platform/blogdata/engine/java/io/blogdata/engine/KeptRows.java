package io.blogdata.engine;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Computes rows once, keeps them on the executors, and names them by a temporary view of the session (option {@code
 * view}). Spark forgets their plan, so what they were computed from is remembered here, for the lineage of what is
 * computed from them.
 */
public final class KeptRows implements CreatableRelationProvider, DataSourceRegister {

  @Override
  public String shortName() {
    return "kept-rows";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> parameters, Dataset<Row> rows) {
    ColumnLineage lineage = ColumnLineage.of(rows);
    org.apache.spark.sql.classic.Dataset<Row> kept =
        (org.apache.spark.sql.classic.Dataset<Row>) rows.localCheckpoint();
    lineage.remember((LogicalRDD) kept.queryExecution().analyzed());
    kept.createOrReplaceTempView(CollectionConverters.asJava(parameters).get("view"));
    return Scala.relation(context, rows.schema());
  }
}
