"""``python -m tinynode.learn``: a command of the course."""

import sys

from tinynode.learn import main

if __name__ == "__main__":
    sys.exit(main())
