# Every fuzzer for ten seconds.
set -euo pipefail
[[ -x tests/fuzz/run.sh ]] || exit 0
tests/fuzz/run.sh --seconds 10
