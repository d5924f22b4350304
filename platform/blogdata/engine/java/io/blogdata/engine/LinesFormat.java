package io.blogdata.engine;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.TextBasedFileFormat;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function1;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.Iterator$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Reads text lines unchanged: {@code raw} BINARY (the bytes between two line feeds) and {@code source_offset} BIGINT
 * (the byte at which the line begins in the decompressed file).
 *
 * <p>Spark's text source has no offset and decodes the lines; to find a row again, its offset and its exact bytes are
 * needed. Only a line feed ends a line, so carriage returns and all other bytes are kept.
 *
 * <p>With the option {@code within}, a file outside that folder (after links are resolved) has no lines and is not
 * opened. A stream's source lists links like files, and no code can check them before the stream opens them.
 */
public final class LinesFormat extends TextBasedFileFormat implements DataSourceRegister {
  static final StructType SCHEMA =
      new StructType().add("raw", DataTypes.BinaryType, false).add("source_offset", DataTypes.LongType, false);

  @Override
  public String shortName() {
    return "lines";
  }

  @Override
  public Option<StructType> inferSchema(
      SparkSession spark, Map<String, String> options, Seq<FileStatus> files) {
    return Option.apply(SCHEMA);
  }

  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession spark, Job job, Map<String, String> options, StructType schema) {
    throw new UnsupportedOperationException("the lines format only reads");
  }

  @Override
  public Function1<PartitionedFile, Iterator<InternalRow>> buildReader(
      SparkSession spark,
      StructType dataSchema,
      StructType partitionSchema,
      StructType requiredSchema,
      Seq<Filter> filters,
      Map<String, String> options,
      Configuration hadoop) {
    java.util.Map<String, String> given = CollectionConverters.asJava(options);
    int longest = Integer.parseInt(given.getOrDefault("longest", String.valueOf(Integer.MAX_VALUE)));
    return new OpenFile(requiredSchema.fieldNames(), given.get("within"), longest);
  }

  private static final class OpenFile extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
      implements Serializable {
    private final String[] columns;
    private final String within;
    private final int longest;

    OpenFile(String[] columns, String within, int longest) {
      this.columns = columns;
      this.within = within;
      this.longest = longest;
    }

    @Override
    public Iterator<InternalRow> apply(PartitionedFile file) {
      Path path = Path.of(file.toPath().toUri().getPath());
      return within != null && Outside.of(path, within)
          ? Iterator$.MODULE$.empty()
          : new Lines(path, file, columns, longest);
    }
  }

  private static final class Lines extends AbstractIterator<InternalRow> {
    private final LineReader reader;
    private final String[] columns;
    private Boolean ready;

    Lines(Path path, PartitionedFile file, String[] columns, int longest) {
      this.columns = columns;
      try {
        reader = new LineReader(path, file.start(), file.start() + file.length(), longest);
      } catch (IOException error) {
        throw new UncheckedIOException("cannot open " + path, error);
      }
      if (TaskContext.get() != null) {
        TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
      }
    }

    @Override
    public boolean hasNext() {
      if (ready == null) {
        try {
          ready = reader.next();
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
        if (!ready) {
          close();
        }
      }
      return ready;
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new java.util.NoSuchElementException();
      }
      ready = null;
      Object[] cells = new Object[columns.length];
      for (int i = 0; i < columns.length; i++) {
        cells[i] = columns[i].equals("raw") ? reader.line() : (Object) reader.offset();
      }
      return new GenericInternalRow(cells);
    }

    private void close() {
      try {
        reader.close();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }
}
