"""Tables: their versions, the one way to write, audits, the one committer, companions, members, compaction."""
