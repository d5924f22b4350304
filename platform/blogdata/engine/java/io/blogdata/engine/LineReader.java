package io.blogdata.engine;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * Reads the lines of a landed file, or of a byte range of it, unchanged: only a line feed ends a line.
 *
 * <p>A line belongs to the range in which it begins; a compressed file belongs to the range that begins at 0. A UTF-8
 * byte order mark at the start of the content is no part of the first line, which begins at offset 0 all the same.
 */
final class LineReader implements AutoCloseable {
  private static final byte[] MARK = {(byte) 0xef, (byte) 0xbb, (byte) 0xbf};

  private final InputStream stream;
  private final long end;
  private final int longest;
  private final byte[] buffer = new byte[1 << 16];
  private int at;
  private int filled;
  private long position;
  private long offset;
  private byte[] line;

  /**
   * Opens a range of a file.
   *
   * @param start first byte of the range in the stored file
   * @param end first byte after the range; {@code Long.MAX_VALUE} for the end of the file
   * @param longest maximum bytes of a line
   */
  LineReader(Path file, long start, long end, int longest) throws IOException {
    this.longest = longest;
    boolean compressed = LandedContent.isCompressed(file);
    this.end = !compressed ? end : start == 0 ? Long.MAX_VALUE : 0;
    // The byte before the range shows whether a line begins with the range.
    position = compressed ? 0 : Math.max(0, start - 1);
    stream = LandedContent.open(file, position, compressed);
    try {
      if (start > 0 && !compressed) {
        skipLine();
      }
    } catch (IOException error) {
      stream.close();
      throw error;
    }
  }

  /** Moves to the next line; returns false when the range has no more. */
  boolean next() throws IOException {
    offset = position;
    if (offset >= end) {
      return false;
    }
    if (offset == 0) {
      skipMark();
    }
    if (!fill()) {
      return false;
    }
    int feed = feed();
    if (feed < filled) {
      line = Arrays.copyOfRange(buffer, at, bounded(feed - at, feed));
      take(feed + 1);
      return true;
    }
    ByteArrayOutputStream pieces = new ByteArrayOutputStream(2 * buffer.length);
    while (fill()) {
      feed = feed();
      pieces.write(buffer, at, bounded(pieces.size() + (feed - at), feed) - at);
      if (feed < filled) {
        take(feed + 1);
        break;
      }
      take(feed);
    }
    line = pieces.toByteArray();
    return true;
  }

  byte[] line() {
    return line;
  }

  long offset() {
    return offset;
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }

  private int bounded(int length, int until) throws IOException {
    if (length > longest) {
      throw new IOException("a line is longer than " + longest + " bytes");
    }
    return until;
  }

  private void skipMark() throws IOException {
    while (filled < MARK.length && more()) {}
    if (filled >= MARK.length && Arrays.equals(buffer, 0, MARK.length, MARK, 0, MARK.length)) {
      take(MARK.length);
    }
  }

  private void skipLine() throws IOException {
    while (fill()) {
      int feed = feed();
      take(Math.min(feed + 1, filled));
      if (feed < at) {
        return;
      }
    }
  }

  /** Returns the index of the next line feed in the buffer, or of its end. */
  private int feed() {
    int index = at;
    while (index < filled && buffer[index] != '\n') {
      index++;
    }
    return index;
  }

  private void take(int until) {
    position += until - at;
    at = until;
  }

  /** Has unread bytes in the buffer; returns false at the end of the content. */
  private boolean fill() throws IOException {
    while (at == filled) {
      at = filled = 0;
      if (!more()) {
        return false;
      }
    }
    return true;
  }

  private boolean more() throws IOException {
    int count = stream.read(buffer, filled, buffer.length - filled);
    filled += Math.max(count, 0);
    return count >= 0;
  }
}
