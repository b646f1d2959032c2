#!/bin/bash
# The demo as a newcomer meets it: its page in a real browser, and its end.
# (`demo_app/run.sh --check` is a test of its own.)

# Some functions are called by name:
# shellcheck disable=SC2317
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../support/lib.sh
. "$here/../support/lib.sh"
room_open

# run.sh prints the address once everything answers.
"$here/../../demo_app/run.sh" --port 0 >"$room/run.log" 2>&1 </dev/null &
run_pid=$!
started+=("$run_pid")
is_up_or_over() { grep -q 'Ctrl-C' "$room/run.log" || ! is_running "$run_pid"; }
wait_for 300 is_up_or_over || true
grep -q 'Ctrl-C' "$room/run.log" || {
    cat "$room/run.log" >&2
    die "run.sh does not start"
}
url=$(grep -o 'http://127.0.0.1:[0-9]*/' "$room/run.log" | head -n 1)

status=0
python3 "$here/demo_page.py" "$url" >"$room/page.log" 2>&1 || status=$?
cat "$room/page.log"
check "the page in a browser" 0 "$status"

status=0
stop "$run_pid" || status=$?
check "run.sh after SIGTERM" 143 "$status"

status=0
python3 "$here/demo_ends.py" >"$room/ends.log" 2>&1 || status=$?
cat "$room/ends.log"
check "every way to end run.sh" 0 "$status"
finish
