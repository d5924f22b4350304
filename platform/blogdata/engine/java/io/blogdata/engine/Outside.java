package io.blogdata.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whether a path leads outside a folder once links are resolved, or to a pipe or device; neither is opened. */
final class Outside {
  private Outside() {}

  static boolean of(Path file, String folder) {
    try {
      Path real = file.toRealPath();
      // A pipe would be waited for without end.
      return !Files.isRegularFile(real) || !real.startsWith(Path.of(folder).toRealPath());
    } catch (IOException gone) {
      // A file that is gone fails when it is opened, with an error that names it; only one that exists is outside.
      return Files.exists(file);
    }
  }
}
