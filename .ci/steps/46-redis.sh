# The demo's own check over one Redis that two instances share.
set -euo pipefail
./demo_app/run.sh --check --redis
