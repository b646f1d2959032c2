# The first command of the README, started, asked and interrupted as with Ctrl-C: no
# process, no file and no port is left.
set -euo pipefail
. tests/support/lib.sh
room_open

# The folders, sockets and listening ports now.
seen_now() {
    find /tmp -maxdepth 1 -name 'weir*' ! -path "$room" | sort
    grep -E '^ *[0-9]+: (0100007F|00000000):1F90 [0-9A-F:]+ 0A ' /proc/net/tcp || true
}

# below PID: it and all of its descendants.
below() {
    local children child
    echo "$1"
    read -r -a children < <(cat "/proc/$1/task/"*/children 2>/dev/null) || true
    for child in "${children[@]}"; do
        below "$child"
    done
}

before=$(seen_now)
env --default-signal=INT setsid ./demo_app/run.sh >"$room/run.log" 2>&1 </dev/null &
run_pid=$!
started+=("$run_pid")
is_up_or_over() { grep -q 'Ctrl-C' "$room/run.log" || ! is_running "$run_pid"; }
wait_for 120 is_up_or_over || true
url=$(grep -o 'http://127.0.0.1:[0-9]*' "$room/run.log" | head -n 1) || {
    cat "$room/run.log"
    die "run.sh does not start"
}
check "the address" http://127.0.0.1:8080 "$url"
request "$url/whoami"
check "it answers" '200 {"type":"ip","id":"127.0.0.1"}' "$status $body"

mapfile -t processes < <(below "$run_pid")
check_between "processes, nginx's and the demo's among them" 6 100 "${#processes[@]}"
kill -INT -- "-$run_pid"
is_over() { ! is_running "$run_pid"; }
wait_for 20 is_over || true
status=0
stop "$run_pid" 1 || status=$?
check "run.sh after Ctrl-C" 130 "$status"
left=()
for pid in "${processes[@]}"; do
    ! is_running "$pid" || left+=("$pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")")
done
check "processes left" "" "${left[*]-}"
check "folders and listeners" "$before" "$(seen_now)"
finish
