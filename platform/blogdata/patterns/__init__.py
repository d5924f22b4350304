"""The patterns, one module each under its book name, in a package per family."""
