# The command of the README.
set -euo pipefail
./tests/run.sh
