package io.blogdata.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Lets a test step through a write: {@code <folder>/<phase>.hold} makes it wait at a phase, {@code .fail} ends it there.
 */
final class Probe {
  private final String folder;

  Probe(String folder) {
    this.folder = folder;
  }

  void reached(String phase) {
    if (folder == null) {
      return;
    }
    try {
      if (Files.exists(Paths.get(folder, phase + ".reached"))) {
        // A command of Delta's that was overtaken tries again by itself; only its first attempt is stepped through.
        return;
      }
      Files.createFile(Paths.get(folder, phase + ".reached"));
      while (Files.exists(Paths.get(folder, phase + ".hold"))) {
        Thread.sleep(20);
      }
      if (Files.exists(Paths.get(folder, phase + ".fail"))) {
        throw new IllegalStateException("the write was ended at " + phase);
      }
    } catch (IOException | InterruptedException error) {
      throw new IllegalStateException("probe at " + phase, error);
    }
  }
}
