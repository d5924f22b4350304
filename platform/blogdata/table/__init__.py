"""What changes a table: files become a commit of its log, by compare-and-set and without a JVM."""
