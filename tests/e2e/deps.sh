#!/bin/bash
# tests/support/deps.sh against an apt and a dpkg that are made up: when it calls apt, how
# it keeps services from starting, and what it leaves behind.
set -euo pipefail
. "$(dirname "$0")/../support/lib.sh"
room_open

deps=$repo/tests/support/deps.sh
bin=$room/bin
policy=$room/policy-rc.d
export WEIR_POLICY_RC_D=$policy STUBS=$room
mkdir "$bin"

stub() { # NAME <SCRIPT
    { echo '#!/bin/bash' && cat; } >"$bin/$1"
    chmod +x "$bin/$1"
}
stub id <<'END'
cat "$STUBS/uid"
END
stub dpkg-query <<'END'
case $1 in
-L) exit 0 ;;
esac
if [[ $# == 2 ]]; then
    sed 's/^/installed /' "$STUBS/installed"
else
    grep -qx "$3" "$STUBS/installed" && echo installed
fi
END
# Installs what it is asked for, unless it is told to fail first; waits where told to.
stub apt-get <<'END'
verb=none
for word in "$@"; do
    case $word in
    install | update) verb=$word ;;
    -*) ;;
    *) [[ $verb != install ]] || names+=" $word" ;;
    esac
done
echo "$verb$names" >>"$STUBS/calls"
"$WEIR_POLICY_RC_D" nginx start
echo "policy $?" >>"$STUBS/calls"
if [[ -e $STUBS/wait ]]; then
    touch "$STUBS/waits"
    while [[ -e $STUBS/wait ]]; do sleep 0.02; done
fi
if [[ $verb == install && -e $STUBS/fail ]]; then
    rm "$STUBS/fail"
    exit 100
fi
printf '%s\n' $names >>"$STUBS/installed"
END
stub systemctl </dev/null

fresh() {
    rm -f "$policy"* "$room"/{calls,fail,wait,waits}
    : >"$room/calls"
    echo 0 >"$room/uid"
    "$deps" --list build | tr ' ' '\n' | grep -v libjansson-dev >"$room/installed"
}

# run_deps SET: with the made-up programs alone in front. Sets status and said.
run_deps() {
    status=0
    said=$(PATH=$bin:/usr/bin:/bin "$deps" "$@" 2>&1 </dev/null) || status=$?
}
calls() { grep -v policy "$room/calls" | paste -sd , || true; }
ask_policy() {
    local answer=0
    "$policy" nginx start >/dev/null || answer=$?
    echo "$answer"
}

fresh
echo libjansson-dev >>"$room/installed"
run_deps build
check "nothing missing: silent, and no apt" "0  " "$status $said $(calls)"

fresh
run_deps build
check "one missing: installed" "0 install libjansson-dev" "$status $(calls)"
check "a service may not start below it" "policy 101" "$(grep policy "$room/calls")"
check "its policy goes" "" "$(ls "$policy"* 2>/dev/null)"

fresh
touch "$room/fail"
run_deps build
check "no package lists yet: an update, and again" \
    "0 install libjansson-dev,update,install libjansson-dev" "$status $(calls)"

# in_the_middle: runs deps.sh until its apt-get waits.
in_the_middle() {
    touch "$room/wait"
    PATH=$bin:/usr/bin:/bin start deps env "$deps" build
    wait_for 10 test -e "$room/waits" || die "apt-get was not called"
}
go_on() {
    status=0
    rm "$room/wait"
    wait_for 10 is_over || true
    wait "$pid" || status=$?
}
is_over() { ! is_running "$pid"; }

fresh
in_the_middle
check "services of others may start meanwhile" 0 "$(ask_policy)"
go_on
check "it ends well" 0 "$status"

fresh
printf '#!/bin/sh\nexit 104\n' >"$policy"
chmod +x "$policy"
in_the_middle
check "a former policy holds for others meanwhile" 104 "$(ask_policy)"
go_on
check "and is put back" "0 104 $policy" "$status $(ask_policy) $(ls "$policy"*)"

for signal in INT TERM HUP; do
    fresh
    printf '#!/bin/sh\nexit 104\n' >"$policy"
    chmod +x "$policy"
    in_the_middle
    kill -"$signal" "$pid"
    sleep 0.1
    check "$signal: the policy stands while apt-get works" "$policy $policy.before-weir" \
        "$(echo "$policy"*)"
    go_on
    check "$signal: the former policy is put back" \
        "$((128 + $(kill -l "$signal"))) 104 $policy" \
        "$status $(ask_policy) $(ls "$policy"*)"
done

fresh
in_the_middle
kill -KILL "$pid"
go_on
check "killed: its policy refuses nothing any more" 0 "$(ask_policy)"
wait_for 10 grep -qx libjansson-dev "$room/installed" # apt-get itself lives on
sed -i /libjansson-dev/d "$room/installed"
run_deps build
check "and the next call takes it away" "" "$(ls "$policy"* 2>/dev/null)"

fresh
echo 1000 >"$room/uid"
stub sudo <<'END'
while [[ $1 == -* ]]; do shift; done
echo 0 >"$STUBS/uid"
echo sudo >>"$STUBS/calls"
exec "$@"
END
run_deps build
check "through sudo" "0 sudo,install libjansson-dev" "$status $(calls)"

fresh
echo 1000 >"$room/uid"
stub sudo <<'END'
exit 1
END
run_deps build
check "sudo refuses: the packages are listed" "1 1" \
    "$status $(grep -cx ' *libjansson-dev' <<<"$said")"
check "and apt is not called" "" "$(calls)"

fresh
run_deps nonsense
check "an unknown set" 2 "$status"
finish
