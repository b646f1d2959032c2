# Every C file is as clang-format leaves it.
set -euo pipefail
git ls-files -z '*.c' '*.h' | xargs -0 clang-format-14 --dry-run --Werror
