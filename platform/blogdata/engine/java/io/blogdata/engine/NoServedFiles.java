package io.blogdata.engine;

import java.io.File;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.sql.artifact.ArtifactManager;

/**
 * Keeps Spark's driver from serving the files of its user to everybody.
 *
 * <p>The driver's RPC port answers requests for files, also those of clients that have not authenticated. It appends the
 * requested name to the folder of the sessions' artifacts, whatever the name: {@code /artifacts/../../etc/shadow} is
 * served. This plugin runs before the first session, and gives the name {@code artifacts} to a folder that cannot exist;
 * no path leads through it.
 *
 * <p>The price: executors cannot load artifacts that a client adds to its session.
 *
 * <p>In Java, because no setting switches this off, and only a plugin runs before the first session.
 */
public final class NoServedFiles implements SparkPlugin {
  private static final File NOWHERE = new File("/dev/null/none");

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        String name = "/" + ArtifactManager.ARTIFACT_DIRECTORY_PREFIX();
        // Fails when the name is taken already. Spark itself registers it only if absent.
        SparkEnv.get().rpcEnv().fileServer().addDirectory(name, NOWHERE);
        return Map.of();
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }
}
