"""What comes in: the one reader of landed lines, used by `land`, by Spark, by streams and by tests."""
