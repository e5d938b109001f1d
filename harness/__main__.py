"""`python -m harness`."""

import sys

from harness.command_line import main

sys.exit(main(sys.argv[1:]))
