# Faults played to running apps, a few runs of each with room for a busy machine; the long
# form is tests/faults/run.sh by hand.
set -euo pipefail
tests/faults/run.sh --short
