# shellcheck shell=bash
# Helpers for end-to-end tests: sourced by tests/e2e/*.sh, the demo's run.sh and .ci/run.
#
# A script begins with
#
#     set -euo pipefail
#     . "$(dirname "$0")/../support/lib.sh"
#     room_open
#
# calls check for each thing that must hold, and ends with `finish`. However it ends, what
# was begun with start or nginx_start is ended by its process id and the room, a folder of
# its own, is removed.
#
# Some variables are set here for the scripts alone:
# shellcheck disable=SC2034

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${WEIR_BUILD:-$repo/build} # where the programs under test are
room=                            # the script's own folder
started=()                       # process ids, in the order they were started
passed=0
failed=0

say() { printf '%s\n' "$*"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# ---- the room -----------------------------------------------------------------------

# Makes the folder $room. Its path is short, since a socket's may have 107 bytes, and
# another user, such as nginx's worker, may enter but not list it.
room_open() {
    trap room_close EXIT # first: an interruption must find a folder that has an owner
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    room=$(mktemp -d /tmp/weir.XXXXXX)
    chmod 711 "$room"
}

room_close() {
    local status=$?
    trap '' HUP INT TERM # the cleaning up is not interrupted a second time
    while ((${#started[@]})); do
        stop "${started[-1]}" || true
    done
    if [[ $status != 0 && -n ${WEIR_KEEP:-} ]]; then
        say "kept: $room" >&2
    elif [[ -n $room ]]; then
        rm -rf "$room"
    fi
    return "$status"
}

# ---- programs -----------------------------------------------------------------------

# start NAME PROGRAM [ARGUMENT...]: runs it in the background with its output in
# $room/NAME.log. Sets pid. It gets a session of its own, so that a Ctrl-C at the terminal
# reaches it only through this script, which ends things in order.
# A kill -9 of the script, which can't clean up, ends it too. SIGINT, which is ignored in
# the background, is as usual for it.
start() {
    local name=$1
    shift
    setsid env --default-signal=INT,QUIT setpriv --pdeathsig TERM -- "$@" </dev/null >>"$room/$name.log" 2>&1 &
    pid=$!
    started+=("$pid")
}

# is_running PID: a zombie does not run.
is_running() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
    [[ -n $state && $state != Z ]]
}

# stop PID [SECONDS]: SIGTERM, SIGKILL to it and what it started once the seconds (10) are
# over. Returns its exit status; 137 says that it had to be killed. Its number is forgotten:
# another process may get it.
stop() {
    local pid=$1 i status=0
    kill -TERM "$pid" 2>/dev/null || true
    for ((i = ${2:-10} * 20; i > 0; i--)); do
        is_running "$pid" || break
        sleep 0.05
    done
    if is_running "$pid"; then
        kill -KILL "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null || true
    fi
    wait "$pid" 2>/dev/null || status=$?
    forget "$pid"
    return "$status"
}

# forget PID: no longer ours to end.
forget() {
    local one kept=()
    for one in "${started[@]}"; do
        [[ $one == "$1" ]] || kept+=("$one")
    done
    started=("${kept[@]}")
}

# wait_for SECONDS COMMAND...: repeats the command until it succeeds; 1 when the time is
# over first.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.05
    done
}

# Something listens at this unix socket, or at this TCP port of 127.0.0.1.
unix_listens() {
    awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' \
        /proc/net/unix
}
tcp_listens() {
    grep -qE "^ *[0-9]+: (0100007F|00000000):$(printf %04X "$1") [0-9A-F:]+ 0A " /proc/net/tcp
}

# Prints a TCP port that nothing uses now. It may be taken until it is used: whoever
# listens on it tries again with another one then.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$port") " /proc/net/tcp /proc/net/tcp6 ||
            break
    done
    echo "$port"
}

# started_or_die NAME COMMAND...: waits until the program that was started last answers,
# that is, until the command succeeds; ends the script with the program's log if it ends
# or is silent for 10 seconds.
started_or_die() {
    local name=$1 end=$((SECONDS + 10))
    shift
    until "$@" >/dev/null 2>&1; do
        if ! is_running "$pid" || ((SECONDS >= end)); then
            tail -n 20 "$room/$name.log" >&2
            die "$name does not answer"
        fi
        sleep 0.05
    done
}

# ---- servers ------------------------------------------------------------------------

# nginx_start PORT <SERVER: a private nginx on 127.0.0.1 (0: a free port), with the lines
# of standard input in its server block and Debian's own fastcgi_params within reach:
#     nginx_start 0 <<END
#     location / { include /etc/nginx/fastcgi_params; fastcgi_pass unix:$room/app.sock; }
#     END
# Sets nginx_port and nginx_pid. nginx_http may hold lines for the http block, such as an
# upstream. A used port is an error that names it.
nginx_start() {
    local want=$1 server try
    server=$(cat)
    mkdir -p "$room/nginx"
    chmod 711 "$room/nginx"
    for ((try = 0; try < 5; try++)); do
        [[ $want == 0 ]] && nginx_port=$(free_port) || nginx_port=$want
        if tcp_listens "$nginx_port"; then
            [[ $want == 0 ]] || die "port $want of 127.0.0.1 is in use"
            continue
        fi
        nginx_conf "$server" >"$room/nginx/nginx.conf"
        start nginx nginx -p "$room/nginx" -e "$room/nginx/error.log" -c "$room/nginx/nginx.conf"
        nginx_pid=$pid
        while is_running "$nginx_pid" && [[ ! -s $room/nginx/nginx.pid ]]; do
            sleep 0.02
        done
        is_running "$nginx_pid" && return
        grep -qs 'Address already in use' "$room/nginx/error.log" || break
        [[ $want == 0 ]] || die "port $want of 127.0.0.1 is in use"
        : >"$room/nginx/error.log"
    done
    tail -n 20 "$room/nginx.log" >&2
    die "nginx does not start"
}

nginx_conf() { # SERVER
    local user=
    [[ $(id -u) != 0 ]] || user="user www-data;"
    cat <<END
$user
daemon off;
worker_processes 1;
pid $room/nginx/nginx.pid;
error_log $room/nginx/error.log;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path $room/nginx/body;
    proxy_temp_path $room/nginx/proxy;
    fastcgi_temp_path $room/nginx/fastcgi;
    uwsgi_temp_path $room/nginx/uwsgi;
    scgi_temp_path $room/nginx/scgi;
    ${nginx_http:-}
    server {
        listen 127.0.0.1:$nginx_port;
        server_name localhost;
        $1
    }
}
END
}

# ---- requests -----------------------------------------------------------------------

# request [CURL ARGUMENT...]: one request, with no proxy of the environment in between.
# Sets status, head (without CR) and body; status is 000 where no answer came. The body
# stays in $room/request/body, byte for byte, until the next one.
request() {
    local out
    mkdir -p "$room/request"
    rm -f "$room/request/head" "$room/request/body"
    out=$(curl -sS --noproxy '*' --max-time "${request_seconds:-20}" -o "$room/request/body" \
        -D "$room/request/head" -w '%{http_code}' "$@" 2>"$room/request/error") || true
    status=${out:-000}
    head=$(tr -d '\r' <"$room/request/head" 2>/dev/null) || head=
    body=$(tr -d '\0' <"$room/request/body" 2>/dev/null) || body=
}

# header NAME: the value of a field of the last answer, empty where it is absent.
header() {
    sed -n "s/^$1: *//Ip" <<<"$head" | head -n 1
}

# statuses [CURL ARGUMENT...]: the status of each of many requests, one a line.
statuses() {
    curl -sS --noproxy '*' --max-time "${request_seconds:-60}" -o /dev/null \
        -w '%{http_code}\n' "$@"
}

# ---- what holds ---------------------------------------------------------------------

# check WHAT EXPECTED SEEN: counts it, and says what was seen where they differ; with
# show_all=1 in any case. Always returns 0, so that the script goes on.
check() {
    local holds=no
    [[ $2 != "$3" ]] || holds=yes
    count $holds "$@"
}

# check_between WHAT LOW HIGH SEEN: a whole number within both ends.
check_between() {
    local holds=no
    if [[ $4 =~ ^-?[0-9]+$ ]] && (($4 >= $2 && $4 <= $3)); then
        holds=yes
    fi
    count $holds "$1" "$2 to $3" "$4"
}

count() { # yes|no WHAT EXPECTED SEEN
    local format='%s: %s\n    expected: %s\n    seen:     %s\n'
    if [[ $1 == yes ]]; then
        passed=$((passed + 1))
        # shellcheck disable=SC2059
        [[ -z ${show_all:-} ]] || printf "$format" ok "${@:2}"
    else
        failed=$((failed + 1))
        # shellcheck disable=SC2059
        printf "$format" FAILED "${@:2}"
    fi
}

# finish: the closing line, and exit status 0 only if something held and nothing failed.
finish() {
    say "$passed passed, $failed failed"
    ((failed == 0 && passed > 0)) && exit 0
    exit 1
}
