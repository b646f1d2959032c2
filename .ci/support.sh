# shellcheck shell=bash
# What several steps of .ci/run share. A step runs at the root of the tree; ci_folder is
# where .ci/run builds and logs.

# build_with NAME MESON-OPTION...: a build folder of that name, made anew.
build_with() {
    local folder=${ci_folder:?}/$1
    shift
    rm -rf "$folder"
    meson setup "$folder" "$@"
    ninja -C "$folder"
}

# planted REPORTS PROGRAM WORDS: the program has a fault; its report must have the words.
planted() {
    rm -rf "$1"
    mkdir -p "$1"
    timeout 60 "$2" || true
    if ! grep -qs "$3" "$1"/found.*; then
        echo "the planted fault of ${2##*/} was not found"
        exit 1
    fi
    echo "planted: ${2##*/} was found"
}

# sanitized REPORTS ARGUMENT...: runs the tests; each file of reports is a failure more.
# The tests of the demo's users (nginx's worker is one) must be able to write theirs.
sanitized() {
    local reports=$1 found output=$ci_folder/log/sanitized status=0 counts
    shift
    rm -rf "$reports"
    mkdir -p "$reports"
    chmod 1777 "$reports"
    WEIR_TIME_FACTOR=5 WEIR_SCRIPT_SECONDS=400 tests/run.sh "$@" >"$output" || status=$?
    sed '$d' "$output"
    counts=$(tail -n 1 "$output")
    [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]] || exit 1
    # In a forked process LeakSanitizer wonders about the threads that the parent has: a
    # file of such lines alone is no report.
    find "$reports" -type f -exec sh -c \
        '! grep -qvE "Running thread [0-9]+ was not suspended" "$1"' - {} \; -delete
    found=$(find "$reports" -type f | wc -l)
    find "$reports" -type f -exec head -n 60 {} +
    echo "$found reports"
    echo "${BASH_REMATCH[1]} passed, $((BASH_REMATCH[2] + found)) failed"
    ((status == 0 && found == 0))
}
