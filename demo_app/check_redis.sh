# shellcheck shell=bash
# What `run.sh --check --redis` asks: two instances, each with a table of its own, behind
# one nginx, enforce one limit together; and a Redis that hangs holds nobody up. Sourced by
# run.sh.

# Variables of lib.sh, run.sh and check.sh:
# shellcheck disable=SC2154,SC2034

# many COUNT AT_ONCE [CURL ARGUMENT...]: a line for each answer: status, seconds it took,
# Demo-Instance, Weir-Source, Retry-After; into $room/many.
many() {
    local count=$1 at_once=$2
    shift 2
    seq "$count" | xargs -P "$at_once" -I '{}' curl -sS --noproxy '*' --max-time 20 \
        -o /dev/null -w '%{http_code} %{time_total} %header{demo-instance} %header{weir-source} %header{retry-after}\n' \
        "$@" >"$room/many" 2>"$room/many.log" || true
    cat "$room/many" >>"$room/all"
}

# statuses_of: "100 x 200, 50 x 429" of the last many.
statuses_of() {
    cut -d ' ' -f 1 "$room/many" | sort | in_row
}

# answers_of INSTANCE STATUS FILE
answers_of() {
    awk -v instance="$1" -v status="$2" \
        '$3 == instance && (status == "" || $1 == status)' "$3" | wc -l
}

check_redis() {
    show_all=1
    : >"$room/all"
    check_shared
    check_lifetimes
    check_buckets
    check_stopped
    check_back
    say
    finish
}

# As in check_window: all of it within one minute.
check_shared() {
    local try begin was_passed=$passed was_failed=$failed

    for try in 1 2 3; do
        passed=$was_passed failed=$was_failed begin=$SECONDS
        check_together
        check_login
        check_users
        ((SECONDS - begin > 55 && try < 3)) || return 0
        say "This took $((SECONDS - begin)) s, longer than 55: again on a fresh table."
        fresh_table
    done
}

check_together() {
    local name

    step "2. 150 requests over two instances: 100 a minute together"
    many 150 4 "$url/api/weather/paris?n={}"
    check "of all" "100 x 200, 50 x 429" "$(statuses_of)"
    for name in "${instances[@]}"; do
        check_between "answers of instance $name" 50 100 \
            "$(answers_of "$name" '' "$room/many")"
    done
    check "who decided" "150 x redis" "$(cut -d ' ' -f 4 "$room/many" | sort | in_row)"
}

check_lifetimes() {
    local key without=0 keys=0

    step "6. Every key has a lifetime"
    while read -r key; do
        keys=$((keys + 1))
        (($(redis pttl "$key" </dev/null) > 0)) || without=$((without + 1))
    done < <(redis --scan --pattern 'rate_limit:*')
    check_between "keys" 4 20 "$keys"
    check "without a lifetime" 0 "$without"
}

check_buckets() {
    local begin end passed_now

    step "7. /api/search, 30 at once: 20, then four a second"
    begin=$(date +%s%N)
    many 30 30 "$url/api/search?q={}"
    end=$(date +%s%N)
    passed_now=$(grep -c '^200 ' "$room/many" || true)
    check_between "passed" 20 $((20 + 4 * (end - begin) / 1000000000 + 1)) "$passed_now"

    step "8. /api/export, three at once, ten units each of twenty"
    many 3 3 -X POST "$url/api/export?n={}"
    check "answers" "2 x 200, 1 x 429" "$(statuses_of)"
    check_between "Retry-After of the third" 1 3 "$(awk '$1 == 429 { print $5 }' "$room/many")"
}

check_stopped() {
    local name

    step "9. Redis hangs"
    kill -STOP "$redis_pid"
    : >"$room/all"
    many 1 1 -H 'Content-Type: application/json' -d '{"user":"alice","password":"weir"}' \
        "$url/api/login"
    check "a log-in, which must not be guessed at" "1 x 503" "$(statuses_of)"
    check_between "its Retry-After" 1 60 "$(cut -d ' ' -f 5 "$room/many")"
    request -H 'Content-Type: application/json' -d '{"user":"alice","password":"weir"}' \
        "$url/api/login"
    check "its code" StoreUnavailable "$(of_body .code)"
    many 150 4 -b "$room/carol.cookies" "$url/api/weather/paris?n={}"
    check "150 of carol's" "100 x 200, 50 x 429" "$(statuses_of)"
    for name in "${instances[@]}"; do
        check "her share of instance $name" 50 "$(answers_of "$name" 200 "$room/many")"
    done
    check "who decided" "150 x local" "$(cut -d ' ' -f 4 "$room/many" | sort | in_row)"
    check "answers with 500, or none" 0 "$(grep -cE '^(500|000) ' "$room/all" || true)"
    check "answers that took over $((250 + late_ms)) ms" 0 \
        "$(awk -v ms=$((250 + late_ms)) '$2 * 1000 > ms' "$room/all" |
            tee -a "$room/slow" | wc -l)"
}

# How much later than promised an answer may come, where the machine is busy with other
# things: of the environment, 0 unless told.
late_ms=${WEIR_LATE_MS:-0}

decided_by_redis() {
    request -b "$room/carol.cookies" "$url/api/search"
    [[ $(header Weir-Source) == redis ]]
}

check_back() {
    local begin end

    step "10. Redis goes on"
    kill -CONT "$redis_pid"
    begin=$(date +%s%N)
    wait_for 10 decided_by_redis || true
    end=$(date +%s%N)
    check "Weir-Source" redis "$(header Weir-Source)"
    check_between "milliseconds until Redis decides again" 0 $((2000 + late_ms)) \
        $(((end - begin) / 1000000))
}
