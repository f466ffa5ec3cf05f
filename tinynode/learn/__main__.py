"""``python -m tinynode.learn``: see ``tinynode.learn.command``."""

import sys

from tinynode.learn.command import main

if __name__ == "__main__":
    sys.exit(main())
