"""Audit-Write-Audit-Publish: no row is visible before it was audited.

Problem: a job that writes first and checks afterwards shows its readers the bad rows in between; a job that
stages a copy, checks it and moves it pays for every row twice.

How it works: every write to a table goes through :func:`blogdata.publish.publish.publish`. Delta's own write command
runs inside a transaction that stays open. The audits of the dataset's contract, including the row account against the
layer above, read the files it wrote. Only then is the transaction committed, with the run, the inputs' versions, the
accounts and all measures in the commit. After a failed audit, or if the process is killed at any moment, the table is
unchanged; the unreferenced files are left to vacuum. The account is the audit of the input: a step reads its inputs
at one version and states what the layer above recorded for it.

What a failed audit does is declared with it: refuse the rows, or publish them with a warning in the commit and in the
ledger. Refused rows are kept under a name for two weeks (:mod:`blogdata.publish.refused`); a person may lift one audit
for one run. Single bad rows are dispatched before, by a Dead-Letter; a stream is judged over its newest rows, batch by
batch.

The trap: the audited files must be the published ones. Auditing the frame instead evaluates it a second time, so a
nondeterministic frame publishes rows that were never audited.

When not to use it: never bypass it. Where Spark cannot load the engine's jar, ``Engine.CHECKPOINT`` audits a
checkpoint of the frame and then writes that checkpoint, which costs more and has no column lineage. There, too,
no unaudited row is visible, and rows computed from the table's own rows (a merge) are written only if these have not
changed. But an overwrite begins its transaction only after the audit: of two concurrent overwrites the later one
replaces the other's rows, as if started after it, where ``Engine.TRANSACTION`` refuses it.

Source: Data Engineering Design Patterns, ch. 9.
"""
