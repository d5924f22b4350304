"""Schema Compatibility Enforcer: a change of a schema that would break its readers is refused before it is made.

Problem: a team removes a column that it no longer needs. The job of another team names it, and fails in the night.

How it works: a contract declares which versions of its schema have to understand each other, by the modes of schema
registries (backward, forward, full; with the last version or with all of them).
:func:`blogdata.publish.incompatibilities.incompatibilities` lists everything in which two schemas do not. It is
enforced twice: in continuous integration against the released versions of the contract, and before every write
against the table (:func:`blogdata.publish.incompatibilities.hold_table`), where nothing is written after a refusal.
New fields of a producer are no change of a table; they are kept in the raw line.

The trap: Avro's rules do not hold for tables. An Avro reader replaces an absent optional field by its default; a SQL
query that names an absent column fails. So in forward modes no column may be removed, however optional. And a column
that is added is null in the rows that are older, whatever the contract says: a required one needs a `default`, with
which these rows are filled.

When not to use it: for a dataset that nobody reads yet; declare `NONE` until somebody does. A change that has to break
readers is a Schema Migrator's work.

Source: Data Engineering Design Patterns, ch. 9.
"""
