package io.blogdata.engine;

import java.util.List;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** What Java needs to speak to Spark's Scala interfaces. */
final class Scala {
  private Scala() {}

  static <T> scala.collection.immutable.Seq<T> seq(List<T> items) {
    return scala.collection.immutable.List$.MODULE$.from(CollectionConverters.asScala(items));
  }

  /** What a writing source must return; nobody reads it. */
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
