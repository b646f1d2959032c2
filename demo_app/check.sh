# shellcheck shell=bash
# What `run.sh --check` asks of the running demo, in steps that anyone can repeat by hand
# with curl. Sourced by run.sh, whose url and fresh_table are used here.

# Variables of lib.sh and run.sh:
# shellcheck disable=SC2154,SC2034

step() { printf '\n%s\n' "$*"; }

# in_row <STATUSES: "100 x 200, 50 x 429" for statuses, one a line, in their order.
in_row() {
    uniq -c | awk '{ printf "%s%d x %s", (NR > 1 ? ", " : ""), $1, $2 } END { print "" }'
}

# of_body JQ-FILTER: from the JSON body of the last answer.
of_body() {
    jq -r "$1" 2>/dev/null <<<"$body" || echo "no JSON"
}

check_demo() {
    show_all=1
    check_address
    check_window
    check_health
    say
    finish
}

# An address is known by its connection; nothing that a client sends can change it.
check_address() {
    local address='{"type":"ip","id":"127.0.0.1"}'
    local cookie

    cookie=weir_demo_session=alice.4102444800.$(printf '%064d' 0)
    step "1. Without a session the caller is the address"
    request "$url/whoami"
    check "GET /whoami" "$address" "$body"
    request -u bob:x "$url/whoami"
    check "with a user name that nobody checked" "$address" "$body"
    request -H 'X-Forwarded-For: 1.2.3.4' "$url/whoami"
    check "with X-Forwarded-For: 1.2.3.4" "$address" "$body"
    request -H "Cookie: $cookie" "$url/whoami"
    check "with a made-up cookie" "$address" "$body"
}

# Steps 2 to 6 count within one minute. On a machine that is too slow for it they are
# done again on a fresh table.
check_window() {
    local try begin was_passed=$passed was_failed=$failed

    for try in 1 2 3; do
        passed=$was_passed failed=$was_failed begin=$SECONDS
        check_limit
        check_refusal
        check_login
        check_users
        check_classic
        ((SECONDS - begin > 55 && try < 3)) || return 0
        say "This took $((SECONDS - begin)) s, longer than 55: again on a fresh table."
        fresh_table
    done
}

check_limit() {
    local i path seen=

    step "2. 150 requests in a row, three spellings of one endpoint: 100 a minute"
    first_refusal=
    for ((i = 1; i <= 150; i++)); do
        case $((i % 3)) in
        1) path=/api/weather/paris ;;
        2) path="/api/weather/rome?n=$i" ;;
        0) path=//api/weather/%70aris ;;
        esac
        request "$url$path"
        seen+=$status$'\n'
        if [[ $status == 429 && -z $first_refusal ]]; then
            first_refusal=$head$'\n\n'$body
        fi
    done
    check "1 to 100, then 101 to 150" "100 x 200, 50 x 429" "$(printf '%s' "$seen" | in_row)"
}

check_refusal() {
    local retry_after

    step "3. The first refusal"
    say "    ${first_refusal//$'\n'/$'\n'    }"
    head=${first_refusal%%$'\n\n'*}
    body=${first_refusal##*$'\n\n'}
    retry_after=$(header Retry-After)
    check_between "Retry-After" 1 60 "$retry_after"
    check "status in the body" 429 "$(of_body .status)"
    check "code" TooManyRequests "$(of_body .code)"
    check "violated-policies" '["minute"]' "$(of_body '."violated-policies" | tojson')"
    check "retry_after in the body is the field's" "$retry_after" "$(of_body .retry_after)"
}

# log_in USER PASSWORD [JAR]: keeps the cookie in $room/JAR.cookies, or USER's.
log_in() {
    request -c "$room/${3:-$1}.cookies" -H 'Content-Type: application/json' \
        -d "{\"user\":\"$1\",\"password\":\"$2\"}" "$url/api/login"
}

check_login() {
    local user seen=()

    step "4. Five log-ins a minute from one address, right or wrong"
    for user in alice bob carol; do
        log_in "$user" weir
        seen+=("$status")
    done
    log_in mallory weir
    seen+=("$status")
    log_in mallory wrong
    seen+=("$status")
    check "alice, bob, carol, two wrong ones" "200 200 200 403 403" "${seen[*]}"
    log_in alice weir nobody
    check "the sixth, though right" 429 "$status"
}

check_users() {
    local seen

    step "5. A user has a budget of its own"
    request -b "$room/alice.cookies" "$url/api/weather/paris"
    check "alice's first weather" "200, r=99" \
        "$status, $(header RateLimit | grep -o 'r=[0-9]*')"
    request -b "$room/alice.cookies" "$url/whoami"
    check "alice's GET /whoami" '{"type":"user","id":"alice"}' "$body"
    request "$url/api/weather/paris"
    check "the address, still" 429 "$status"
    seen=$(seq 150 | xargs -P 16 -I '{}' curl -sS --noproxy '*' --max-time 20 -o /dev/null \
        -w '%{http_code}\n' -b "$room/bob.cookies" "$url/api/weather/paris?n={}" |
        sort | in_row)
    check "150 of bob's, 16 at a time" "100 x 200, 50 x 429" "$seen"
}

# It counts its runs itself: what alice gets is the run after the tenth.
check_classic() {
    local i seen=

    step "6. A handler of libfcgi's, unchanged, behind the same chain: 10 a minute"
    for ((i = 1; i <= 12; i++)); do
        request "$url/classic"
        seen+=$status$'\n'
        ((i != 10)) || check "the tenth" "run 10, for 127.0.0.1" "$body"
    done
    check "1 to 10, then 11 and 12" "10 x 200, 2 x 429" "$(printf '%s' "$seen" | in_row)"
    request -b "$room/alice.cookies" "$url/classic"
    check "alice's first, the refused ones never reached it" \
        "200, run 11, for 127.0.0.1" "$status, $body"
}

check_health() {
    local heads

    step "7. /health is never refused and never counted"
    heads=$(curl -sS --noproxy '*' --max-time 60 -o /dev/null -D - "$url/health?n=[1-200]" |
        tr -d '\r')
    check "200 requests" "200 x 200" "$(awk '/^HTTP\// { print $2 }' <<<"$heads" | in_row)"
    check "RateLimit fields in their answers" 0 "$(grep -ci '^RateLimit' <<<"$heads" || true)"
}
