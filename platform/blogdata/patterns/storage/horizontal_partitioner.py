"""Horizontal Partitioner: rows that are read together are stored together, and a query opens only their folders.

Problem: a report on one day reads two years of files, and a job that rewrites one hour conflicts with all the others.
How it works: a table has one partition column of low cardinality; a predicate on it prunes whole folders before a file
is opened, and two writers of different partitions never conflict. A key with too many values is refused before anything
is written, by the contract's retention and grain (:func:`blogdata.table.tables.partition_column`). A partition that
holds far more or fewer rows than comparable ones is reported by the check `skew` of its publication
(:func:`blogdata.watch.skew_detector.volumes`).
The trap: a key with many values (a user, a second) makes one small file per value: planning takes longer than reading.
And a predicate on an expression of the column (`substr(day, 1, 7)`) may return the right rows and still prune nothing.
When not to use it: for columns with many values; Sorter and Bucket serve those, and file statistics (Metadata Enhancer)
skip within a partition.
Source: Data Engineering Design Patterns, ch. 8.
"""
