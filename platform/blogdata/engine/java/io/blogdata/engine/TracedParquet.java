package io.blogdata.engine;

import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes rows as Parquet files, and beside them ({@code _lineage.json}) what their columns were computed from.
 *
 * <p>Here and not in the client, because only the server has the analysed plan. Options: {@code path}; {@code
 * partition}, a column that is not written, and {@code folder}, SQL for the names of the folders by its values, or
 * empty for files of one partition; {@code of}, the number of rows that they are computed from. All others are those of Spark's Parquet writer.
 */
public final class TracedParquet implements CreatableRelationProvider, DataSourceRegister {

  @Override
  public String shortName() {
    return "traced-parquet";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> parameters, Dataset<Row> rows) {
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(CollectionConverters.asJava(parameters));
    String path = options.remove("path");
    String partition = options.remove("partition");
    String folder = options.remove("folder");
    long of = Long.parseLong(options.remove("of"));
    ColumnLineage lineage = ColumnLineage.of(rows);
    Dataset<Row> placed = rows;
    if (!partition.isEmpty()) {
      placed = folder.isEmpty() ? rows.drop(partition) : rows.withColumn(partition, functions.expr(folder));
    }
    DataFrameWriter<Row> writer = placed.write().mode(mode).options(options);
    DataFrameWriter<Row> parquet = folder.isEmpty() ? writer : writer.partitionBy(partition);
    SparkSession spark = ((org.apache.spark.sql.classic.Dataset<Row>) rows).sparkSession();
    FewRows.with(spark, of, rows, () -> parquet.parquet(path));
    Map<String, Object> found = new LinkedHashMap<>();
    lineage.describe(found);
    write(spark, new Path(path, "_lineage.json"), Json.write(found));
    return Scala.relation(context, rows.schema());
  }

  private static void write(SparkSession spark, Path file, String text) {
    try (OutputStream out = file.getFileSystem(spark.sessionState().newHadoopConf()).create(file)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
