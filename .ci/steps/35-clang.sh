# clang has nothing to say.
set -euo pipefail
. .ci/support.sh
CC=clang CXX=clang++ build_with clang -Dwerror=true
