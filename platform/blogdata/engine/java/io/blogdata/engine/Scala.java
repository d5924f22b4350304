package io.blogdata.engine;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;

/** Helpers for calling Spark's Scala interfaces from Java. */
final class Scala {
  private Scala() {}

  /** Rethrows what Scala's methods throw unchecked, a checked one too. */
  @SuppressWarnings("unchecked")
  static <E extends Throwable> E unchanged(Throwable error) throws E {
    throw (E) error;
  }

  /** Returns the relation that a data source must return after a write; it is never read. */
  static BaseRelation relation(SQLContext context, StructType schema) {
    return new BaseRelation() {
      @Override
      public SQLContext sqlContext() {
        return context;
      }

      @Override
      public StructType schema() {
        return schema;
      }
    };
  }
}
