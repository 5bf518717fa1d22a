"""`python -m seqstruct` is the `seqstruct` command."""

import sys

from seqstruct.cli import main

if __name__ == "__main__":
    sys.exit(main())
