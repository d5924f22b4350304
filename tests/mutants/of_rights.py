"""Defects in what jobs and roles may reach."""

from __future__ import annotations

from mutants.mutant import in_code, in_engine

ROTATED = "tests/security/test_rotated_keys.py"
ENCRYPTED = "tests/security/test_encryptor.py"
RESOURCES = "tests/security/test_fine_grained_accessor_for_resources.py"
REACH = "platform/blogdata/patterns/security/fine_grained_accessor_for_resources.py"

ROLES = "tests/security/test_roles_of_postgresql.py"
TABLES = "platform/blogdata/patterns/security/fine_grained_accessor_for_tables.py"
SINK = "platform/blogdata/patterns/security/sink_roles.py"

SECRETS = "tests/security/test_secrets_pointer.py"
POINTER = "platform/blogdata/secrets/secrets_pointer.py"

SECRETLESS = "tests/security/test_secretless_connector.py"
CONNECTOR = "platform/blogdata/secrets/secretless_connector.py"

RIGHTS = (
    in_code(
        "an authority is replaced in one moment",
        CONNECTOR,
        "one.ends if later is None else min(one.ends, later.made + GRACE)",
        "one.ends if later is None else min(one.ends, later.made)",
        f"{SECRETLESS}::test_both_generations_are_trusted_until_the_grace_period_ends",
    ),
    in_code(
        "old certificates hold for ever",
        CONNECTOR,
        "if now >= until]",
        "if now >= one.ends]",
        f"{SECRETLESS}::test_both_generations_are_trusted_until_the_grace_period_ends",
    ),
    in_code(
        "the server shows a certificate that consumers with old files do not trust",
        CONNECTOR,
        "shown = trusted[0]",
        "shown = trusted[-1]",
        f"{SECRETLESS}::test_both_generations_are_trusted_until_the_grace_period_ends",
    ),
    in_code(
        "a replaced key is used until the job ends",
        POINTER,
        "            self._secret = fetch(self.pointer)\n            if",
        "            if",
        f"{SECRETS}::test_a_replaced_key_is_read_again_while_a_job_runs",
    ),
    in_code(
        "a secret shows itself",
        "platform/blogdata/secrets/secret.py",
        "        return _HIDDEN\n",
        "        return self._value\n",
        f"{SECRETS}::test_a_secret_does_not_show_itself",
    ),
    in_code(
        "of two processes that make a secret, the second replaces the first one's",
        "platform/blogdata/secrets/secret_files.py",
        "os.link(made, self.file(name, after + 1))",
        "os.replace(made, self.file(name, after + 1)), Path(made).touch()",
        f"{SECRETS}::test_own_secrets_are_made_once_by_many",
    ),
    in_code(
        "a server's secret that was deleted is made anew",
        "platform/blogdata/secrets/openbao.py",
        '"options": {"cas": after}, ',
        "",
        f"{SECRETS}::test_a_deleted_secret_of_the_server_is_not_made_anew",
    ),
    in_code(
        "a reader of PostgreSQL sees the rows of who asked not to be shared",
        TABLES,
        'condition = " AND ".join(filter(None, conditions)).replace("`", \'"\') or "true"',
        'condition = "true"',
        f"{ROLES}::test_each_login_sees_its_columns_of_its_rows",
    ),
    in_code(
        "who only looks at the UI sends a mutation beside a query",
        "platform/blogdata/services/ui_viewer.py",
        "OperationType.MUTATION not in operations",
        "OperationType.QUERY in operations",
        "tests/attacks/test_ui_viewer.py::test_who_looks_starts_and_changes_nothing",
    ),
    in_code(
        "an analyst sees the visit of who asked not to be shared",
        TABLES,
        'return f"CASE WHEN NOT `{PRIVATE}` THEN {usual}{instead} END"',
        "return usual",
        "tests/security/test_linkage_of_private_views.py::test_it_leads_nowhere_in_what_a_role_without_persons_sees",
    ),
    in_code(
        "a partner sees datasets of single visitors",
        TABLES,
        "if rights.visitors and not (_visitors(contract) or contract.anonymous):",
        "if rights.visitors and not contract.columns:",
        f"{ROLES}::test_a_partner_sees_no_group_of_few_visitors",
    ),
    in_code(
        "counts of few visitors tell a country that their visits hide",
        TABLES,
        "if _shown(each.column, rights) is not Shown.AS_IT_IS]",
        "if not each.rows]",
        "tests/security/test_countries_of_few.py::test_a_country_of_few_is_shown_only_to_who_sees_that_of_a_visit",
    ),
    in_code(
        "a role sees all columns of a table of which it sees some",
        TABLES,
        'GRANT SELECT ({", ".join(plain)}) ON {table}',
        "GRANT SELECT ON {table}",
        f"{ROLES}::test_each_login_sees_its_columns_of_its_rows",
    ),
    in_code(
        "grants stay as they were when a contract changes",
        SINK,
        "== {(mark, True)}:",
        "!= {(None, False)}:",
        f"{ROLES}::test_a_column_that_becomes_personal_is_taken_away",
    ),
    in_code(
        "a job reads what it does not declare",
        REACH,
        "if dataset not in self.reads:",
        "if dataset.startswith(self.job):",
        f"{RESOURCES}::test_a_step_that_reaches_beyond_fails",
    ),
    in_code(
        "a job publishes a dataset of another job",
        REACH,
        "if dataset not in self.writes:",
        "if dataset in self.reads - self.writes:",
        f"{RESOURCES}::test_a_step_publishes_no_dataset_of_another_job",
    ),
    in_code(
        "a policy holds for tables whose names begin alike",
        REACH,
        'f"arn:aws:s3:::{folder}*" for folder in folders',
        'f"arn:aws:s3:::{folder[:-1]}*" for folder in folders',
        f"{RESOURCES}::test_a_policy_allows_what_a_job_declares_and_nothing_else",
    ),
    in_engine(
        "rows may be computed from any path",
        "AuditedWrite.java",
        "    spec.requireDeclared(lineage);\n",
        "",
        f"{RESOURCES}::test_a_path_put_together_by_hand_is_found_in_the_plan",
    ),
    in_engine(
        "a ciphertext is valid in any row",
        "Encryption.java",
        "    cipher.updateAAD(bytes(belongsTo));\n",
        "",
        f"{ENCRYPTED}::test_a_value_that_is_not_what_was_encrypted_is_an_error",
    ),
    in_code(
        "a table that was encrypted by another key is continued",
        "assets/silver/reference.py",
        " if entry.judged_by == step.judged_by",
        "",
        f"{ENCRYPTED}::test_no_file_of_the_table_has_a_login_and_it_goes_on_by_another_key",
    ),
    in_code(
        "a key of tokens that was replaced is used",
        "platform/blogdata/orchestration/step.py",
        "if keys.ROTATING not in self.accepted:",
        "if False:",
        f"{ROTATED}::test_a_replaced_key_is_noticed_before_anything_is_written",
    ),
)
