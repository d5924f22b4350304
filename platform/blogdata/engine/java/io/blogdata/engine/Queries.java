package io.blogdata.engine;

import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * Runs queries in parallel.
 *
 * <p>The threads are created anew for each instance, because a thread inherits Spark's local properties from the thread
 * that creates it: the tags by which an interrupted client's jobs are cancelled, and the job description.
 */
final class Queries implements AutoCloseable {
  private final ExecutorService threads;

  Queries(int atOnce) {
    threads = Executors.newFixedThreadPool(atOnce);
  }

  Future<List<Row>> start(Dataset<Row> query) {
    return threads.submit(() -> query.collectAsList());
  }

  /** Waits for a query and returns its rows; its error is rethrown unchanged. */
  static List<Row> rows(Future<List<Row>> query) {
    try {
      return query.get();
    } catch (ExecutionException error) {
      throw Queries.<RuntimeException>unchanged(error.getCause());
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while the written rows were audited", error);
    }
  }

  @Override
  public void close() {
    threads.shutdownNow();
  }

  /** Rethrows an error of another thread unchanged, a checked one too. */
  @SuppressWarnings("unchecked")
  static <E extends Throwable> E unchanged(Throwable error) throws E {
    throw (E) error;
  }
}
