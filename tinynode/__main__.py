"""``python -m tinynode``: see ``tinynode.commands``."""

import sys

from tinynode.commands import main

if __name__ == "__main__":
    sys.exit(main())
