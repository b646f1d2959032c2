# No step has left or changed a file that git sees. In a clean checkout that is: none. And
# no test has left a folder; only a machine of one's own can say so, others run tests too.
set -euo pipefail
git status --porcelain | diff "$ci_folder/log/tree-before" -
[[ -z ${CI:-} ]] || [[ ! -s $ci_folder/log/tree-before ]]
[[ -z ${CI:-} ]] || find /tmp -maxdepth 1 -name 'weir*' | sort |
    diff "$ci_folder/log/folders-before" -
