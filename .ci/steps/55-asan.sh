# Every test under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer. What
# they find goes to files, since Criterion counts a test that leaks as passed: a file is a
# failure. Planted faults show that each of them would be found.
set -euo pipefail
. .ci/support.sh
# clang's: gcc's UndefinedBehaviorSanitizer keeps to standard error beside the other.
CC=clang CXX=clang++ build_with asan -Db_sanitize=address,undefined -Db_lundef=false \
    -Dc_args=-fno-sanitize-recover=all
reports=$ci_folder/reports-asan
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:log_path=$reports/found
export UBSAN_OPTIONS=print_stacktrace=1

planted "$reports" "$ci_folder/asan/tests/planted/planted_leak" 'LeakSanitizer'
planted "$reports" "$ci_folder/asan/tests/planted/planted_overrun" 'heap-buffer-overflow'
planted "$reports" "$ci_folder/asan/tests/planted/planted_undefined" 'runtime error'
# Not the suite `program`: those look at the tree and at what is installed.
sanitized "$reports" --build build-ci/asan --not program
