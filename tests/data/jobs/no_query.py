"""An ordinary job that has no streaming query."""

import sys

print("nothing to stream")
sys.exit(int(sys.argv[1]))
