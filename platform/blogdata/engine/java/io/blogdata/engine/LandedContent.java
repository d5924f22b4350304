package io.blogdata.engine;

import com.github.luben.zstd.ZstdInputStreamNoFinalizer;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.Channels;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;
import org.apache.commons.compress.compressors.bzip2.BZip2CompressorInputStream;
import org.tukaani.xz.XZInputStream;

/**
 * Opens a landed file for its decompressed content; its first bytes determine the compression, never its name.
 *
 * <p>The second reader, {@code landed_formats.py}, knows the same formats by the same bytes.
 */
final class LandedContent {
  private static final int BUFFER = 1 << 16;

  /** Maximum memory for the dictionary of an xz file, KiB: twice what {@code xz -9} needs; the second reader's, too. */
  private static final int XZ_MEMORY = 128 << 10;

  private LandedContent() {}

  /** Returns whether a file is compressed in a way that {@link #open} undoes. */
  static boolean isCompressed(Path file) throws IOException {
    try (InputStream stream = Files.newInputStream(file)) {
      return compression(stream.readNBytes(10)) != 0;
    }
  }

  /** Opens a plain file at a position, or a compressed file, which has to be read from its beginning. */
  static InputStream open(Path file, long position, boolean compressed) throws IOException {
    SeekableByteChannel channel = Files.newByteChannel(file);
    try {
      channel.position(position);
      InputStream stored = Channels.newInputStream(channel);
      if (!compressed) {
        return stored;
      }
      BufferedInputStream buffered = new BufferedInputStream(stored, BUFFER);
      buffered.mark(10);
      char kind = compression(buffered.readNBytes(10));
      buffered.reset();
      switch (kind) {
        case 'g':
          return new GZIPInputStream(buffered, BUFFER);
        case 'b':
          return new BZip2CompressorInputStream(buffered, true);
        case 'x':
          return new XZInputStream(buffered, XZ_MEMORY);
        default:
          return new ZstdInputStreamNoFinalizer(buffered);
      }
    } catch (IOException | RuntimeException error) {
      channel.close();
      throw error;
    }
  }

  private static char compression(byte[] head) {
    if (startsWith(head, 0, 0x1f, 0x8b, 0x08)) {
      return 'g';
    }
    if (startsWith(head, 0, 'B', 'Z', 'h')
        && (startsWith(head, 4, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59)
            || startsWith(head, 4, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90))) {
      return 'b';
    }
    if (startsWith(head, 0, 0xfd, '7', 'z', 'X', 'Z', 0x00)) {
      return 'x';
    }
    boolean skippable = head.length > 0 && (head[0] & 0xf0) == 0x50 && startsWith(head, 1, 0x2a, 0x4d, 0x18);
    return startsWith(head, 0, 0x28, 0xb5, 0x2f, 0xfd) || skippable ? 'z' : 0;
  }

  private static boolean startsWith(byte[] head, int at, int... bytes) {
    if (head.length < at + bytes.length) {
      return false;
    }
    for (int i = 0; i < bytes.length; i++) {
      if ((head[at + i] & 0xff) != bytes[i]) {
        return false;
      }
    }
    return true;
  }
}
