"""``python -m brimline.cli``."""

import sys

from brimline.cli import main

sys.exit(main())
