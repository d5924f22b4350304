"""`python -m blogdata`: the command line, for a process that is started by path."""

from blogdata.cli.main import main

if __name__ == "__main__":
    main()
