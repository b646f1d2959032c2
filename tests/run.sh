#!/bin/bash
# Installs what is missing, builds, and runs every test.
#
#   tests/run.sh [--build FOLDER] [--only KIND]... [--not KIND]... [--list] [NAME]...
#
#   --build   where to build and run (build); one that is set up already keeps its options
#   --only    runs this kind alone, several times for several: a suite of Meson's
#             (unit, threads, model, store, seeds, program) or e2e
#   --not     leaves this kind out
#   --list    prints the kinds and names instead of running them
#   NAME      runs the tests of these names alone: arena, e2e/answer
#
# Meson's list of tests has the compiled ones: those of the suite `unit` are Criterion
# programs, whose tests are counted one by one; of any other suite each program is one
# test. tests/e2e/*.sh are scripts that count for themselves. A test that is skipped or
# that stops before its end counts as failed. The closing line is `N passed, N failed`; the
# exit status is 0 only if none failed and some ran.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

build=build
kinds=()
kinds_not=()
names=()
list=0
passed=0
failed=0
running=
script_seconds=${WEIR_SCRIPT_SECONDS:-120} # an end-to-end script may take this long
program_factor=${WEIR_TIME_FACTOR:-1}      # a sanitizer's slowness

usage() {
    sed -n 's/^#   \(tests.run.sh .*\)/usage: \1/p' tests/run.sh >&2
    exit 2
}

options() {
    while (($#)); do
        case $1 in
        --build) build=${2:?} && shift ;;
        --only) kinds+=("${2:?}") && shift ;;
        --not) kinds_not+=("${2:?}") && shift ;;
        --list) list=1 ;;
        -*) usage ;;
        *) names+=("$1") ;;
        esac
        shift
    done
}

# wanted KIND NAME
wanted() {
    local one
    [[ " ${kinds_not[*]-} " != *" $1 "* ]] || return 1
    if ((${#kinds[@]})); then
        [[ " ${kinds[*]} " == *" $1 "* ]] || return 1
    fi
    ((${#names[@]})) || return 0
    for one in "${names[@]}"; do
        [[ $2 == "$one" ]] && return
    done
    return 1
}

build_all() {
    if [[ ! -f $build/build.ninja ]]; then
        meson setup "$build" >"$work/build" 2>&1 || build_failed
    elif [[ $(build_option tests) == false ]]; then # set up by demo_app/run.sh
        meson configure "$build" -Dtests=true >"$work/build" 2>&1 || build_failed
    fi
    ninja -C "$build" >"$work/build" 2>&1 || build_failed
}

build_option() { # NAME
    meson introspect --buildoptions "$build" | jq -r --arg name "$1" \
        '.[] | select(.name == $name) | .value'
}

build_failed() {
    cat "$work/build"
    echo "the build failed"
    echo "0 passed, 1 failed"
    exit 1
}

# limited FOLDER SECONDS COMMAND...: runs it there, in a process group of its own, which is
# ended as a whole when the time is over or when this script is interrupted. A command in
# the background has SIGINT ignored by default, which no test expects.
limited() {
    local folder=$1 seconds=$2 status=0
    shift 2
    (cd "$folder" && exec env --default-signal=INT,QUIT \
        timeout --kill-after=10 "$seconds" "$@") </dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    return "$status"
}

clean_up() {
    if [[ -n $running ]]; then
        kill -TERM "$running" 2>/dev/null || true
        wait "$running" || true
    fi
    rm -rf "$work"
}

# count PASSED FAILED NAME SECONDS OUTPUT: adds up, and shows a failing test's output.
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    if (($2)); then
        sed "s|^|    |" "$5"
    fi
    printf '%-40s %4d passed %3d failed %4d s\n' "$3" "$1" "$2" "$4"
}

# A Criterion program. It counts from its own report, since its exit status is 0 where a
# test was skipped; a report that is cut short says that the runner itself died.
run_unit() { # NAME SECONDS COMMAND...
    local name=$1 seconds=$2 begin=$SECONDS good bad planned status=0
    shift 2
    rm -f "$work/tap"
    limited "$build" "$seconds" "$@" "--tap=$work/tap" >"$work/out" 2>&1 || status=$?
    touch "$work/tap"
    good=$(grep -cE '^ok - ' "$work/tap" || true)
    bad=$(grep -cE '^ok - .* # SKIP' "$work/tap" || true)
    good=$((good - bad))
    bad=$((bad + $(grep -cE '^not ok - ' "$work/tap" || true)))
    planned=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$work/tap")
    if ((good + bad != ${planned:-0} || good + bad == 0 || (status && !bad))); then
        echo "$name ended with status $status after $((good + bad)) of ${planned:-0} tests" \
            >>"$work/out"
        bad=$((bad + 1))
    fi
    grep -E '^not ok - |^ok - .* # SKIP' "$work/tap" | sed "s/^/FAILED: /" || true
    count "$good" "$bad" "$name" $((SECONDS - begin)) "$work/out"
}

run_program() { # NAME SECONDS COMMAND...
    local name=$1 seconds=$2 begin=$SECONDS status=0
    shift 2
    limited "$build" "$seconds" "$@" >"$work/out" 2>&1 || status=$?
    if ((status)); then
        echo "FAILED: $name, exit status $status"
        count 0 1 "$name" $((SECONDS - begin)) "$work/out"
    else
        count 1 0 "$name" $((SECONDS - begin)) "$work/out"
    fi
}

run_script() { # NAME SCRIPT
    local name=$1 begin=$SECONDS status=0 good=0 bad=0
    limited . "$script_seconds" env "WEIR_BUILD=$(realpath "$build")" bash "$2" \
        >"$work/out" 2>&1 || status=$?
    if [[ $(tail -n 1 "$work/out") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        good=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]}
    else
        echo "the script ended with status $status without its closing line" >>"$work/out"
        bad=1
    fi
    if ((good + bad == 0 || (status && !bad))); then
        echo "the script ended with status $status" >>"$work/out"
        bad=$((bad + 1))
    fi
    ((bad == 0)) || echo "FAILED: $name"
    count "$good" "$bad" "$name" $((SECONDS - begin)) "$work/out"
}

# Lines "KIND<TAB>NAME<TAB>SECONDS<TAB>COMMAND...", the fields of a command split by tabs.
compiled_tests() {
    meson introspect --tests "$build" | jq -r '
        .[] | [(.suite[0] // "program" | sub("^.*:"; "")), .name, .timeout]
            + (.env | to_entries | if . == [] then [] else
                ["env"] + map("\(.key)=\(.value)") end) + .cmd | @tsv'
}

run_compiled() {
    local kind name seconds command
    while IFS=$'\t' read -r -a command; do
        kind=${command[0]} name=${command[1]} seconds=${command[2]}
        [[ $kind == "$project" ]] && kind=program
        wanted "$kind" "$name" || continue
        if ((list)); then
            echo "$kind $name"
        elif [[ $kind == unit ]]; then
            run_unit "$name" $((seconds * program_factor)) "${command[@]:3}"
        else
            run_program "$name" $((seconds * program_factor)) "${command[@]:3}"
        fi
    done <"$work/tests"
}

run_scripts() {
    local script name
    for script in tests/e2e/*.sh; do
        [[ -e $script ]] || continue
        name=e2e/$(basename "$script" .sh)
        wanted e2e "$name" || continue
        if ((list)); then
            echo "e2e $name"
        else
            run_script "$name" "$script"
        fi
    done
}

options "$@"
tests/support/deps.sh test
work=$(mktemp -d)
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
project=weir
build_all
compiled_tests >"$work/tests"
run_compiled
run_scripts
((list)) && exit
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
