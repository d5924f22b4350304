package io.blogdata.engine;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes one line of JSON for each job of Spark: what it took in counts, which repeat, and not in seconds, which do not.
 *
 * <p>Off by default. {@code "spark.extraListeners" = "io.blogdata.engine.JobCounts"} switches it on, and {@code
 * spark.blogdata.counts} names the file.
 */
public final class JobCounts extends SparkListener {
  private static final String FILE = "spark.blogdata.counts";

  private final Path file;
  private final Map<Integer, Map<String, Object>> jobs = new HashMap<>();
  private final Map<Integer, Integer> jobOfStage = new HashMap<>();

  public JobCounts(SparkConf conf) {
    file = Path.of(conf.get(FILE));
  }

  @Override
  public void onJobStart(SparkListenerJobStart start) {
    Map<String, Object> counts = new LinkedHashMap<>();
    counts.put("began", start.time());
    counts.put("tags", start.properties().getProperty("spark.job.tags", ""));
    for (String name : new String[] {"stages", "tasks", "rows_read", "bytes_read", "rows_written", "bytes_written"}) {
      counts.put(name, 0L);
    }
    jobs.put(start.jobId(), counts);
    // A stage that several jobs need is executed by the first one.
    for (var stage : CollectionConverters.asJava(start.stageInfos())) {
      jobOfStage.putIfAbsent(stage.stageId(), start.jobId());
    }
  }

  @Override
  public void onStageCompleted(SparkListenerStageCompleted completed) {
    var stage = completed.stageInfo();
    Integer job = jobOfStage.remove(stage.stageId());
    Map<String, Object> counts = jobs.get(job);
    if (counts == null) {
      return;
    }
    var metrics = stage.taskMetrics();
    add(counts, "stages", 1);
    add(counts, "tasks", stage.numTasks());
    add(counts, "rows_read", metrics.inputMetrics().recordsRead());
    add(counts, "bytes_read", metrics.inputMetrics().bytesRead());
    add(counts, "rows_written", metrics.outputMetrics().recordsWritten());
    add(counts, "bytes_written", metrics.outputMetrics().bytesWritten());
  }

  @Override
  public void onJobEnd(SparkListenerJobEnd end) {
    Map<String, Object> counts = jobs.remove(end.jobId());
    jobOfStage.values().removeIf(job -> job == end.jobId());
    try {
      Files.writeString(
          file, Json.write(counts) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static void add(Map<String, Object> counts, String name, long more) {
    counts.merge(name, more, (before, added) -> (Long) before + (Long) added);
  }
}
