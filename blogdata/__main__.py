"""`python -m blogdata`: the command line, for a process that is started by path."""

from blogdata.main import main

if __name__ == "__main__":
    main()
