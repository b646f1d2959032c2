# Installs what the other steps need; a second call finds nothing to do.
set -euo pipefail
tests/support/deps.sh ci
[[ -z $(tests/support/deps.sh ci 2>&1) ]]
