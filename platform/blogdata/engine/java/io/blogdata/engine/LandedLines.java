package io.blogdata.engine;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.PrunedScan;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads the lines of the named files: {@code raw} BINARY and {@code source_offset} BIGINT as {@link LinesFormat}, and
 * {@code source_file} STRING, the file's name as it was given.
 *
 * <p>Spark's own file sources take paths as patterns, leave out names that look temporary, and return names as URIs that
 * have to be decoded. Here each file is opened by its name and nothing else, and its rows have that name.
 *
 * <p>Options: {@code root}, a folder; {@code files}, names relative to it, as a list in JSON; {@code longest}, the
 * maximum bytes of a line. A file outside the folder (after links are resolved) has no lines and is not opened.
 */
public final class LandedLines implements RelationProvider, DataSourceRegister {
  private static final StructType SCHEMA =
      LinesFormat.SCHEMA.add("source_file", DataTypes.StringType, false);

  /** What opening a file costs, in bytes read meanwhile; as Spark's default. */
  private static final long OPENING = 4 << 20;

  @Override
  public String shortName() {
    return "landed-lines";
  }

  @Override
  public BaseRelation createRelation(SQLContext context, Map<String, String> parameters) {
    java.util.Map<String, String> options = CollectionConverters.asJava(parameters);
    String[] files = Json.read(options.get("files"), String[].class);
    return new Relation(context, options.get("root"), files, Integer.parseInt(options.get("longest")));
  }

  static final class Relation extends BaseRelation implements PrunedScan {
    private final SQLContext context;
    private final String root;
    private final String[] files;
    private final int longest;

    Relation(SQLContext context, String root, String[] files, int longest) {
      this.context = context;
      this.root = root;
      this.files = files;
      this.longest = longest;
    }

    /** Returns the folder of the first file. */
    String folder() {
      return Path.of(root, files[0]).getParent().toString();
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return SCHEMA;
    }

    @Override
    public boolean needConversion() {
      return false;
    }

    @Override
    @SuppressWarnings("unchecked")
    public RDD<Row> buildScan(String[] columns) {
      JavaSparkContext spark = JavaSparkContext.fromSparkContext(context.sparkContext());
      List<List<Range>> tasks = tasks(spark.defaultParallelism());
      String place = root;
      int bound = longest;
      RDD<?> rows =
          spark
              .parallelize(tasks, Math.max(1, tasks.size()))
              .flatMap(ranges -> new Rows(ranges.iterator(), place, columns, bound))
              .rdd();
      // Internal rows, as `needConversion` says; the interface has a type for converted ones only.
      return (RDD<Row>) rows;
    }

    /** Cuts large files into ranges, and groups the ranges of small ones, for tasks of about the same work. */
    private List<List<Range>> tasks(int atOnce) {
      long most = context.sparkSession().sessionState().conf().filesMaxPartitionBytes();
      long[] sizes = new long[files.length];
      long work = 0;
      for (int i = 0; i < files.length; i++) {
        sizes[i] = size(Path.of(root, files[i]));
        work += sizes[i] + OPENING;
      }
      long target = Math.min(most, Math.max(OPENING, work / Math.max(1, atOnce)));
      List<List<Range>> tasks = new ArrayList<>();
      long left = 0;
      for (int i = 0; i < files.length; i++) {
        for (long start = 0; start == 0 || start < sizes[i]; start += target) {
          // The last range ends with the file, even if it has grown.
          long end = start + target < sizes[i] ? start + target : Long.MAX_VALUE;
          long cost = Math.min(target, sizes[i] - start) + OPENING;
          if (cost > left) {
            tasks.add(new ArrayList<>());
            left = Math.max(target, cost);
          }
          left -= cost;
          tasks.get(tasks.size() - 1).add(new Range(files[i], start, end));
        }
      }
      return tasks;
    }

    private long size(Path file) {
      try {
        return Outside.of(file, root) ? 0 : Files.size(file);
      } catch (IOException error) {
        throw unreadable(file, error);
      }
    }
  }

  private record Range(String file, long start, long end) implements Serializable {}

  /** The rows of some ranges; one file is open at a time. */
  private static final class Rows implements java.util.Iterator<InternalRow> {
    private final java.util.Iterator<Range> ranges;
    private final String root;
    private final String[] columns;
    private final int longest;
    private Path file;
    private UTF8String name;
    private LineReader reader;
    private boolean there;

    Rows(java.util.Iterator<Range> ranges, String root, String[] columns, int longest) {
      this.ranges = ranges;
      this.root = root;
      this.columns = columns;
      this.longest = longest;
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> close());
    }

    @Override
    public boolean hasNext() {
      while (!there && (reader != null || ranges.hasNext())) {
        try {
          if (reader == null) {
            open(ranges.next());
          }
          there = reader != null && reader.next();
        } catch (IOException error) {
          throw unreadable(file, error);
        }
        if (!there) {
          close();
        }
      }
      return there;
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new java.util.NoSuchElementException();
      }
      there = false;
      Object[] cells = new Object[columns.length];
      for (int i = 0; i < columns.length; i++) {
        switch (columns[i]) {
          case "raw" -> cells[i] = reader.line();
          case "source_offset" -> cells[i] = reader.offset();
          default -> cells[i] = name;
        }
      }
      return new GenericInternalRow(cells);
    }

    private void open(Range range) throws IOException {
      file = Path.of(root, range.file());
      name = UTF8String.fromString(range.file());
      reader = Outside.of(file, root) ? null : new LineReader(file, range.start(), range.end(), longest);
    }

    private void close() {
      try {
        if (reader != null) {
          reader.close();
        }
        reader = null;
      } catch (IOException error) {
        throw unreadable(file, error);
      }
    }
  }

  /** Names the file as Spark's own sources do, so that both errors are classified by one rule. */
  private static UncheckedIOException unreadable(Path file, IOException error) {
    String named = "error while reading file " + file.toUri() + ". " + error;
    return new UncheckedIOException(named, error);
  }
}
