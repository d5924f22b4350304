package io.blogdata.engine;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;

/** What a data source of the engine returns to Spark, which asks each one for a relation; it is never read. */
final class NoRows extends BaseRelation {
  private final SQLContext context;
  private final StructType schema;

  NoRows(SQLContext context, StructType schema) {
    this.context = context;
    this.schema = schema;
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  @Override
  public StructType schema() {
    return schema;
  }
}
