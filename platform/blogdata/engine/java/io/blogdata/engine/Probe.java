package io.blogdata.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Locale;

/**
 * Lets a test step through a write. At each phase it creates {@code <folder>/<phase>.reached}, waits while {@code
 * <phase>.hold} exists, and fails if {@code <phase>.fail} exists.
 */
final class Probe {
  private final String folder;
  private final String prefix;

  Probe(String folder, String prefix) {
    this.folder = folder;
    this.prefix = prefix;
  }

  /** Returns the probe of a companion's write; its phases begin with {@code companion.}. */
  Probe ofCompanion() {
    return new Probe(folder, "companion.");
  }

  void reached(String name) {
    if (folder == null) {
      return;
    }
    String phase = prefix + name;
    try {
      if (Files.exists(Paths.get(folder, phase + ".reached"))) {
        // A Delta command retries by itself after a conflict; only its first attempt is stepped through.
        return;
      }
      Files.createFile(Paths.get(folder, phase + ".reached"));
      while (Files.exists(Paths.get(folder, phase + ".hold"))) {
        Thread.sleep(20);
      }
      if (Files.exists(Paths.get(folder, phase + ".fail"))) {
        throw new WriteEnded(phase);
      }
    } catch (IOException | InterruptedException error) {
      throw new IllegalStateException("probe at " + phase, error);
    }
  }

  /** The failure asked for; its condition names the phase, because only conditions of errors are kept. */
  private static final class WriteEnded extends Refusal {
    WriteEnded(String phase) {
      super(
          "BLOGDATA_WRITE_ENDED." + phase.toUpperCase(Locale.ROOT).replace('.', '_'),
          "XX000",
          "the write was ended at " + phase);
    }
  }
}
