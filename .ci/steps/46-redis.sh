# The demo's own check over one Redis that two instances share.
set -euo pipefail
WEIR_LATE_MS=250 ./demo_app/run.sh --check --redis
