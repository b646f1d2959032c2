#!/bin/bash
# tests/run.sh itself, on a project made up for it: every way in which a test can fail, or
# can only seem to pass, is counted as a failure.
set -euo pipefail
. "$(dirname "$0")/../support/lib.sh"
room_open

project=$room/project
mkdir "$project"
cat >"$project/meson.build" <<'END'
project('made_up', 'c')
criterion = dependency('criterion')
foreach name : ['good', 'bad', 'dies', 'empty']
  test(name, executable(name, name + '.c', dependencies: criterion), suite: 'unit')
endforeach
test('right', find_program('true'), suite: 'program')
test('wrong', find_program('false'), suite: 'program')
test('skips', find_program('sh'), args: ['-c', 'exit 77'], suite: 'program')
test('hangs', find_program('sleep'), args: ['100'], suite: 'program', timeout: 1)
test('ignores', find_program('sh'),
  args: ['-c', 'trap : INT; kill -INT $$; exit 0'], suite: 'program')
test('env', find_program('sh'), args: ['-c', 'test "$TOLD" = "a b"'],
  env: ['TOLD=a b'], suite: 'program')
END
cat >"$project/good.c" <<'END'
#include <criterion/criterion.h>
Test(good, one) {}
Test(good, two) {}
END
cat >"$project/bad.c" <<'END'
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
Test(bad, holds) {}
Test(bad, does_not_hold) { cr_assert(0, "the words of the failure"); }
Test(bad, crashes) { raise(SIGSEGV); }
Test(bad, leaves) { exit(3); }
Test(bad, is_skipped, .disabled = true) {}
END
cat >"$project/dies.c" <<'END'
#include <criterion/criterion.h>
#include <signal.h>
Test(dies, with_the_runner) { kill(getppid(), SIGKILL); }
END
sed -i '1i #include <unistd.h>' "$project/dies.c"
echo '#include <criterion/criterion.h>' >"$project/empty.c"
meson setup "$room/build" "$project" >"$room/setup.log" || {
    cat "$room/setup.log"
    die "meson setup failed"
}

# run [ARGUMENT...]: sets status, said and last.
run() {
    status=0
    said=$("$repo/tests/run.sh" --build "$room/build" --not e2e "$@" 2>&1) || status=$?
    last=$(tail -n 1 <<<"$said")
}

run good
check "two tests that hold" "0 2 passed, 0 failed" "$status $last"
run bad
check "a failure, a crash, an exit and a skip" "1 1 passed, 4 failed" "$status $last"
check "the failing test's output is shown" 1 "$(grep -c 'words of the failure' <<<"$said")"
check "and its name" 1 "$(grep -c '^FAILED: .*bad::does_not_hold' <<<"$said")"
run dies
check "a runner that dies" "1 0 passed, 1 failed" "$status $last"
run empty
check "a program without a test" "1 0 passed, 1 failed" "$status $last"
run nothing_of_that_name
check "no test at all" "1 0 passed, 0 failed" "$status $last"
run --only program
check "programs: right, ignores, env; wrong, skips, hangs" \
    "1 3 passed, 3 failed" "$status $last"

echo 'this is no C' >>"$project/good.c"
run good
check "a build that fails" "1 0 passed, 1 failed" "$status $last"
check "says why" 1 "$(grep -c 'the build failed' <<<"$said")"
finish
