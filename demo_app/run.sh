#!/bin/bash
# The demo behind a real nginx, on 127.0.0.1 only.
#
#   demo_app/run.sh [--port N]            until Ctrl-C; the default port is 8080, 0 a free one
#   demo_app/run.sh --check [--port N]    sends real requests and says what was expected and
#                                         seen; the default port is 0
#   with --redis                          two instances, as if on two hosts, share a private
#                                         Redis
#
# Installs what is missing, builds into build/, and keeps everything else in one private
# folder. However it ends, its processes end with it and the folder goes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../tests/support/lib.sh
. "$here/../tests/support/lib.sh"
# shellcheck source-path=SCRIPTDIR source=check.sh
. "$here/check.sh"
# shellcheck source-path=SCRIPTDIR source=check_redis.sh
. "$here/check_redis.sh"

instances=(one)      # a weir-demo each, all behind one nginx
redis_socket=        # of the private redis-server; empty: none
declare -A demo_pids # by instance

usage() {
    sed -n '4,8s/^# \{0,3\}//p' "$here/run.sh"
}

read_options() {
    port=
    mode=serve
    redis=
    while (($#)); do
        case $1 in
        --port)
            [[ ${2:-} =~ ^[0-9]{1,5}$ && $((10#$2)) -le 65535 ]] ||
                die "--port takes a number from 0 to 65535"
            port=$((10#$2))
            shift
            ;;
        --check) mode=check ;;
        --redis) redis=1 instances=(one two) ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            usage >&2
            die "unknown option $1"
            ;;
        esac
        shift
    done
    if [[ -z $port ]]; then
        [[ $mode == check ]] && port=0 || port=8080
    fi
}

# Only the demo is built: what the tests need may be missing here.
build_demo() {
    [[ -f $build/build.ninja ]] || as_step meson setup "$build" "$repo" -Dtests=false
    as_step ninja -C "$build" demo_app/weir-demo
}

# Runs a step beside the script, so that a signal ends it at once and not when it is done;
# its output is of interest only if it fails.
as_step() {
    "$@" >"$room/step.log" 2>&1 </dev/null &
    started+=($!)
    wait $! || {
        tail -n 40 "$room/step.log" >&2
        die "failed: $*"
    }
    forget $!
}

# All instances sign cookies with one key.
make_key() {
    (umask 077 && head -c 32 /dev/urandom >"$room/session.key")
}

# start_demo INSTANCE: on a fresh table, since that lives as long as the process. Where
# nginx's worker is another user, its socket belongs to that user's group. Whoever tries
# the demo has one address, so that address may look many sessions up at once.
start_demo() {
    local group=() store=()
    [[ -z $redis_socket ]] ||
        # More than the default: what is shown is the shared limit, also on a machine that
        # is too busy to answer within 20 ms.
        store=(--store "redis:unix:$redis_socket" --instances "${#instances[@]}"
            --redis-timeout 50ms)
    [[ $(id -u) != 0 ]] || group=(--socket-group www-data)
    start "$1" "$build/demo_app/weir-demo" --listen "unix:$room/$1.sock" "${group[@]}" \
        --instance "$1" --key-file "$room/session.key" --max-offloads-address 64 \
        "${store[@]}"
    demo_pids[$1]=$pid
    started_or_die "$1" unix_listens "$room/$1.sock"
}

start_demos() {
    local name
    for name in "${instances[@]}"; do
        start_demo "$name"
    done
}

# A redis-server of our own: no port, no file of the machine's own is read or written.
start_redis() {
    redis_socket=$room/redis.sock
    start redis redis-server --port 0 --unixsocket "$redis_socket" --dir "$room" \
        --save '' --appendonly no
    redis_pid=$pid
    started_or_die redis redis ping
}

redis() {
    redis-cli -s "$redis_socket" "$@"
}

# fresh_table: ends the instances and starts them again.
fresh_table() {
    local name
    [[ -z $redis_socket ]] || redis flushall >/dev/null
    for name in "${instances[@]}"; do
        stop "${demo_pids[$name]}" || true
    done
    start_demos
}

# What nginx_start writes: the readable file beside this script, filled in.
nginx_conf() {
    local user='' servers='' name
    [[ $(id -u) != 0 ]] || user='user www-data;'
    for name in "${instances[@]}"; do
        servers+="server unix:$room/$name.sock; "
    done
    sed -e "s|@USER@|$user|" -e "s|@ROOM@|$room|" -e "s|@PORT@|$nginx_port|" \
        -e "s|@SERVERS@|$servers|" "$here/nginx.conf.in"
}

# An answer of ours, and not of whoever else listens at that port.
demo_answers() {
    curl -fsS --noproxy '*' --max-time 2 -D - -o /dev/null "$url/health" |
        grep -qi '^Demo-Instance:'
}

serve() {
    say "Weir's demo is at $url/"
    say "    curl -i $url/api/weather/paris"
    say "Ctrl-C ends it."
    wait -n "$nginx_pid" "${demo_pids[@]}" || true
    tail -n 20 "$room"/*.log >&2
    die "a process has ended by itself"
}

read_options "$@"
"$here/../tests/support/deps.sh" build demo ${redis:+redis}
room_open
build_demo
make_key
[[ -z $redis ]] || start_redis
start_demos
nginx_start "$port" </dev/null
url=http://127.0.0.1:$nginx_port
pid=$nginx_pid
started_or_die nginx demo_answers
case $mode in
serve) serve ;;
check) if [[ -n $redis ]]; then check_redis; else check_demo; fi ;;
esac
