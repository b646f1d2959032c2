# clang-tidy has nothing to say about what ships; .clang-tidy lists what it looks for.
set -euo pipefail
run-clang-tidy-14 -quiet -j 2 -p "$ci_folder/clang" "$PWD/(lib|filters|demo_app|tools)/" 2>&1 |
    sed "s|$PWD/||"
