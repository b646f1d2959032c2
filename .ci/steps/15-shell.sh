# Every shell script passes shellcheck; those sourced by others are followed from there.
set -euo pipefail
git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck
