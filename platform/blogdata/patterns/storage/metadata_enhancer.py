"""Metadata Enhancer: each file has min/max statistics of its columns, so a reader skips files that cannot match.

Problem: a query for one user opens every file of the day, because a file's content is known only after opening it.
How it works: for every file, Delta stores the minimum, the maximum and the null count of chosen columns. A reader
compares the predicate with them before it opens a file. The contract names the columns that queries filter by;
:func:`blogdata.table.tables.statistics` makes Delta collect statistics of these columns only.
The trap: by default, Delta collects statistics of the first 32 columns: a wide raw text costs on every write, and a
useful column behind them has none. If the values of a column are spread over all files, its statistics skip nothing:
sort first (Sorter), then measure. And statistics are values: those of a column that identifies a person would stay in
the log, which outlives the rows, so they are refused; a `user_bucket` prunes instead (Bucket).
When not to use it: for columns that no query filters by, as writers and all readers of the log pay for each, and for
long texts, whose statistics are truncated.
Source: Data Engineering Design Patterns, ch. 8.
"""
