package io.blogdata.engine;

import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.Format;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Creates a Delta table with its schema, partitioning, properties and constraints in one commit.
 *
 * <p>In SQL every CHECK constraint is a separate commit that scans the table; with many contracts, creating a lake
 * would take a minute longer. An existing table is left unchanged.
 *
 * <p>Options: {@code path}, {@code schema} (a Spark schema as JSON), {@code partition}, {@code description}, and {@code
 * configuration} (table properties, constraints among them, as a JSON object). The rows are ignored.
 */
public final class ContractTable implements CreatableRelationProvider, DataSourceRegister {

  @Override
  public String shortName() {
    return "contract-table";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> parameters, Dataset<Row> rows) {
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(CollectionConverters.asJava(parameters));
    org.apache.spark.sql.classic.Dataset<Row> data = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    DeltaLog log = DeltaLog.forTable(data.sparkSession(), new Path(options.get("path")));
    OptimisticTransaction transaction = log.startTransaction();
    if (transaction.readVersion() < 0) {
      log.createLogDirectoriesIfNotExists();
      Metadata metadata = metadata(options);
      transaction.updateMetadataForNewTable(metadata);
      scala.collection.immutable.Seq<Action> nothing = Scala.seq(java.util.List.of());
      transaction.commit(nothing, new DeltaOperations.CreateTable(metadata, true, false, Option.empty()));
    }
    return Scala.relation(context, data.schema());
  }

  private static Metadata metadata(Map<String, String> options) {
    StructType schema = (StructType) StructType.fromJson(options.get("schema"));
    String partition = options.get("partition");
    Map<String, String> configuration = new TreeMap<>();
    Json.map(options.get("configuration")).forEach((key, value) -> configuration.put((String) key, (String) value));
    return new Metadata(
        UUID.randomUUID().toString(),
        null,
        options.get("description"),
        new Format("parquet", scala.collection.immutable.Map$.MODULE$.empty()),
        schema.json(),
        Scala.seq(partition == null ? java.util.List.<String>of() : java.util.List.of(partition)),
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(configuration)),
        Option.apply((Object) System.currentTimeMillis()));
  }
}
