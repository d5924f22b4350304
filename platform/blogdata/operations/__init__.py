"""Operations on the data: what each does, as a function, and as a Dagster job that the UI and the terminal start."""
