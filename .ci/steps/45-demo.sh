# The demo's own check, the command of the README.
set -euo pipefail
./demo_app/run.sh --check
