"""Audit-Write-Audit-Publish: no row is visible before it was audited.

Problem: a job that writes first and checks afterwards shows its readers the bad rows in between; a job that stages a
copy, checks it and moves it pays for every row twice.

How it works: rows get into the table of a dataset by :func:`blogdata.table.publish.publish` only. Spark writes the
rows as files below the table, of which its log knows nothing, and counts them in the same pass, by the audits of the
dataset's contract and the table's own conditions (:mod:`blogdata.table.observed`); what it cannot count meanwhile is
counted in these files. Only then does one commit make them a part of the table (:mod:`blogdata.table.committer`), with
the run, the inputs' versions, the accounts and all measures. After a failed audit, or if the process is killed at any
moment, the table is unchanged. The account is the audit of the input: a step reads its inputs at one version and states
what the layer above recorded for it.

What a failed audit does is declared with it: refuse the rows, or publish them with a warning in the commit and in the
ledger. Refused rows are kept under a name for two weeks (:mod:`blogdata.table.refused`); a person may lift one audit
for one run. Single bad rows are dispatched before, by a Dead-Letter; a stream is judged over its newest rows, batch by
batch.

The trap: the audited files must be the published ones. Auditing the frame evaluates it a second time, so a
nondeterministic frame publishes rows that were never audited. So the count stands directly below the write, and the
files must have as many rows as were counted. Another trap: whoever commits files himself has nobody who looks at CHECK
constraints, generated columns or NOT NULL; they are among the audits.

When not to use it: for what adds no row: a compaction, a partition that expires, the values of a new column. These are
commits of their own.

Source: Data Engineering Design Patterns, ch. 9.
"""
