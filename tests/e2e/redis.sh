#!/bin/bash
# The demo with Redis as its store, under many requests at once: nobody gets another's
# answer, and while Redis hangs everybody gets the rules' failure mode in time.
#
#   tests/e2e/redis.sh
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../support/lib.sh
. "$(dirname "$0")/../support/lib.sh"
room_open

redis() { redis-cli -s "$room/redis.sock" "$@"; }

# start_demo WORKERS THREADS
start_demo() {
    local group=()
    [[ $(id -u) != 0 ]] || group=(--socket-group www-data)
    start demo "$build/demo_app/weir-demo" --listen "unix:$room/demo.sock" "${group[@]}" \
        --workers "$1" --threads "$2" --store "redis:unix:$room/redis.sock"
    demo_pid=$pid
    started_or_die demo unix_listens "$room/demo.sock"
}

# Gives 1,600 addresses a count each: 10.0.X.Y has used (100 X + Y) mod 90 of 100.
give_counts() {
    # shellcheck disable=SC2016
    redis eval 'local t = redis.call("TIME")
        local ends = t[1] * 1000000 + 60000000
        for x = 0, 15 do for y = 0, 99 do
            local key = "rate_limit:{ip:10.0." .. x .. "." .. y ..
                "}:GET /api/weather/:city:minute:w1"
            redis.call("SET", key, struct.pack("<dd", ends, (100 * x + y) % 90),
                "PX", 60000)
        end end' 0 >/dev/null
}

start redis redis-server --port 0 --unixsocket "$room/redis.sock" --dir "$room" --save '' \
    --appendonly no
redis_pid=$pid
started_or_die redis redis ping
start_demo 8 2
nginx_start 0 <<END
location / {
    fastcgi_param REQUEST_METHOD \$request_method;
    fastcgi_param REQUEST_URI \$request_uri;
    fastcgi_param QUERY_STRING \$query_string;
    fastcgi_param SERVER_PROTOCOL \$server_protocol;
    fastcgi_param REMOTE_ADDR \$arg_ip;
    fastcgi_pass unix:$room/demo.sock;
}
END
url=http://127.0.0.1:$nginx_port
pid=$nginx_pid
started_or_die nginx curl -fsS --noproxy '*' "$url/health?ip=10.1.0.1"

# ---- 1,600 callers ------------------------------------------------------------------

give_counts
curl -sS --noproxy '*' --max-time 60 -Z --parallel-max 100 -o /dev/null \
    -w '%{url_effective} %{http_code} %header{weir-source} %header{ratelimit}\n' \
    "$url/api/weather/paris?ip=10.0.[0-15].[0-99]" >"$room/callers" 2>/dev/null || true
check "answers" "1600" "$(grep -c ' 200 ' "$room/callers" || true)"
# What was decided while a busy machine kept Redis waiting is nobody's count in Redis.
check_between "of them decided by Redis" $((1500 - 150 * (${WEIR_TIME_FACTOR:-1} - 1))) 1600 "$(grep -c ' redis ' "$room/callers")"
check "of those, with another's count" 0 "$(sed -n \
    's/.*ip=10\.0\.\([0-9]*\)\.\([0-9]*\) 200 redis .*r=\([0-9]*\).*/\1 \2 \3/p' \
    "$room/callers" | awk '$3 != 99 - (100 * $1 + $2) % 90' | wc -l)"

# ---- Redis hangs, two threads a worker -----------------------------------------------

stop "$demo_pid"
start_demo 2 2
wait_for 5 curl -fsS --noproxy '*' "$url/health?ip=10.1.0.1"
statuses "$url/api/weather/paris?ip=10.2.0.[1-20]" >/dev/null # connections are warm
kill -STOP "$redis_pid"
curl -sS --noproxy '*' --max-time 20 -o /dev/null -w '%{http_code} %{time_total}\n' \
    "$url/health?ip=10.1.0.[1-100]" >"$room/health" 2>/dev/null &
health_pid=$!
curl -sS --noproxy '*' --max-time 5 -Z --parallel-max 100 --parallel-immediate \
    -o /dev/null -w '%{http_code} %{time_total} %header{weir-source}\n' \
    "$url/api/weather/paris?ip=10.3.0.[1-100]" >"$room/stopped" 2>/dev/null || true
wait "$health_pid" || true
kill -CONT "$redis_pid"
check "local answers, 100 at once" 100 "$(grep -c '^200 .* local$' "$room/stopped" || true)"
check "that took longer than the deadline and 250 ms" 0 \
    "$(awk '$2 > 0.27' "$room/stopped" | wc -l)"
check "health meanwhile" 100 "$(grep -c '^200 ' "$room/health" || true)"
check "that took longer than 250 ms" 0 "$(awk '$2 > 0.25' "$room/health" | wc -l)"
finish
