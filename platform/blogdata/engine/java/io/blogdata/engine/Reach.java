package io.blogdata.engine;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import org.apache.hadoop.fs.Path;

/** Which tables of the lake the rows of a write may be computed from; the client sends it as JSON. */
final class Reach {
  /** Root of the lake. */
  @JsonProperty("lake")
  String lake;

  /** Datasets of the lake that the rows may be computed from; null for any. */
  @JsonProperty("may_read")
  List<String> mayRead;

  /** Refuses rows that are computed from a table of the lake that is not listed. */
  void require(ColumnLineage lineage) {
    if (mayRead == null) {
      return;
    }
    for (String path : lineage.tables()) {
      String dataset = datasetAt(path);
      if (dataset != null && !mayRead.contains(dataset)) {
        throw new NotDeclared(dataset);
      }
    }
  }

  private String datasetAt(String path) {
    String root = local(lake) + "/";
    String table = local(path);
    if (!table.startsWith(root)) {
      return null;
    }
    String[] parts = table.substring(root.length()).split("/");
    // A folder with a leading underscore has the tables of a dataset's members.
    return parts.length < 2 ? null : parts[0] + "." + (parts[1].startsWith("_") ? parts[1].substring(1) : parts[1]);
  }

  private static String local(String path) {
    return Path.getPathWithoutSchemeAndAuthority(new Path(path)).toString();
  }

  /** Thrown for rows that are computed from a dataset that their job does not declare. */
  private static final class NotDeclared extends Refusal {
    NotDeclared(String dataset) {
      super("BLOGDATA_NOT_DECLARED", "42501", dataset);
    }
  }
}
