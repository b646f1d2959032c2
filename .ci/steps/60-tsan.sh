# The programs with threads under ThreadSanitizer, which Criterion's do not survive; a
# planted race shows that one would be found.
set -euo pipefail
. .ci/support.sh
build_with tsan -Db_sanitize=thread
reports=$ci_folder/reports-tsan
export TSAN_OPTIONS=halt_on_error=0:second_deadlock_stack=1:log_path=$reports/found

planted "$reports" "$ci_folder/tsan/tests/planted/planted_race" 'data race'
sanitized "$reports" --build build-ci/tsan --only threads
