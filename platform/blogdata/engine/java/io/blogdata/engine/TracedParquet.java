package io.blogdata.engine;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.OutputStream;
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
 * <p>Options: {@code path}; {@code partition}, a column that is not written, and {@code folder}, SQL for the names of
 * the folders by its values, or empty for files of one partition; {@code of}, the number of rows that they are computed
 * from. All others are those of Spark's Parquet writer.
 *
 * <p>In Java, because only the server has the analysed plan of what is written ({@link ColumnLineage}).
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
    write(spark, new Path(path, "_lineage.json"), lineage.described());
    return new NoRows(context, rows.schema());
  }

  private static void write(SparkSession spark, Path file, Map<String, Object> content) {
    try (OutputStream out = file.getFileSystem(spark.sessionState().newHadoopConf()).create(file)) {
      new ObjectMapper().writeValue(out, content);
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
