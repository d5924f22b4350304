"""Audit-Write-Audit-Publish: no row is visible before it was audited.

Problem: a job that writes first and checks afterwards shows its readers the bad rows in between; a job that stages a
copy, checks it and moves it pays for every row twice.
How it works: :func:`blogdata.table.publish.publish` is the only way into a table. Spark writes the rows as files below
the table, of which its log knows nothing, and counts them in the same pass, by the audits of the dataset's contract and
the table's own conditions (:mod:`blogdata.table.observed`); the rest is counted in these files. Only then does one
commit make them a part of the table (:mod:`blogdata.table.committer`), with the run, the inputs' versions, the accounts
and all measures. After a failed audit, or a kill at any moment, the table is unchanged. The audit of the input is the
account: a step reads its inputs at one version and states what the layer above recorded for it.

A failed audit refuses the rows, or publishes them with a warning in the commit and in the ledger, as it declares.
Refused rows are kept under a name for two weeks (:mod:`blogdata.table.refused`); a person may lift one audit for one
run. Single bad rows are dispatched before, by a Dead-Letter; a stream is judged over its newest rows, batch by batch.
The trap: the audited files must be the published ones. Auditing the frame evaluates it a second time, so a
nondeterministic frame publishes rows that were never audited. So the count stands directly below the write, and the
files must have as many rows as were counted. Another trap: a commit of files bypasses CHECK constraints, generated
columns and NOT NULL; they are among the audits.
When not to use it: for commits that add no row: a compaction, an expired partition, the values of a new column.
Source: Data Engineering Design Patterns, ch. 9.
"""
