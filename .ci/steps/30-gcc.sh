# gcc has nothing to say, in the debug build that everybody makes and in an optimised one.
set -euo pipefail
. .ci/support.sh
build_with gcc -Dwerror=true
build_with gcc-release -Dwerror=true --buildtype=release
