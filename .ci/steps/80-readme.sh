# The commands that README.md shows are those that the other steps run, and no more; the
# program in it is built and run by tests/readme.sh, which ./tests/run.sh ran.
set -euo pipefail
# shellcheck disable=SC2016 # the backquotes are those of README.md
shown=$(sed -n '/^```sh$/,/^```$/p' README.md | sed '/^```/d; s/ *#.*//' | sort)
run='./demo_app/run.sh
./demo_app/run.sh --check
./tests/run.sh'
diff <(echo "$run") <(echo "$shown")
for command in ./tests/run.sh './demo_app/run.sh --check' ./demo_app/run.sh; do
    grep -qF "$command" .ci/steps/[45]*.sh
done
