# No step has left or changed a file that git sees. In a clean checkout that is: none.
set -euo pipefail
git status --porcelain | diff "$ci_folder/log/tree-before" -
[[ -z ${CI:-} ]] || [[ ! -s $ci_folder/log/tree-before ]]
