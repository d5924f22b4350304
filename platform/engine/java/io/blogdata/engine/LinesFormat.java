package io.blogdata.engine;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
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
import org.apache.spark.util.SerializableConfiguration;
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
  private static final StructType SCHEMA =
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
    String within = CollectionConverters.asJava(options).get("within");
    return new OpenFile(requiredSchema.fieldNames(), within, new SerializableConfiguration(hadoop));
  }

  private static final class OpenFile extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
      implements Serializable {
    private final String[] columns;
    private final String within;
    private final SerializableConfiguration hadoop;

    OpenFile(String[] columns, String within, SerializableConfiguration hadoop) {
      this.columns = columns;
      this.within = within;
      this.hadoop = hadoop;
    }

    @Override
    public Iterator<InternalRow> apply(PartitionedFile file) {
      return leadsOut(file.toPath().toUri())
          ? Iterator$.MODULE$.empty()
          : new Lines(file, columns, hadoop.value());
    }

    private boolean leadsOut(URI file) {
      if (within == null || !"file".equals(file.getScheme())) {
        return false;
      }
      Path path = Path.of(file.getPath());
      try {
        return !path.toRealPath().startsWith(Path.of(within).toRealPath());
      } catch (IOException gone) {
        // A file that is gone fails when it is opened, with an error that names it; only one that exists is outside.
        return path.toFile().exists();
      }
    }
  }

  private static final class Lines extends AbstractIterator<InternalRow> {
    private final LineRecordReader reader =
        new LineRecordReader("\n".getBytes(StandardCharsets.UTF_8));
    private final String[] columns;
    private Boolean ready;

    Lines(PartitionedFile file, String[] columns, Configuration hadoop) {
      this.columns = columns;
      FileSplit split = new FileSplit(file.toPath(), file.start(), file.length(), new String[0]);
      TaskAttemptID attempt = new TaskAttemptID(new TaskID("lines", 0, TaskType.MAP, 0), 0);
      try {
        reader.initialize(split, new TaskAttemptContextImpl(hadoop, attempt));
      } catch (IOException error) {
        throw new UncheckedIOException("cannot open " + file.filePath(), error);
      }
      if (TaskContext.get() != null) {
        TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
      }
    }

    @Override
    public boolean hasNext() {
      if (ready == null) {
        try {
          ready = reader.nextKeyValue();
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
      Text line = reader.getCurrentValue();
      LongWritable offset = reader.getCurrentKey();
      Object[] cells = new Object[columns.length];
      for (int i = 0; i < columns.length; i++) {
        cells[i] = columns[i].equals("raw") ? line.copyBytes() : (Object) offset.get();
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
