# What the tree says about itself is so.
set -euo pipefail
shopt -s lastpipe # holds counts at the end of pipes
failed=0
passed=0

# holds WHAT <LINES: no line means that it holds.
holds() {
    local lines
    lines=$(cat)
    if [[ -z $lines ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s:\n%s\n' "$1" "$lines"
    fi
}

# The code map of README.md has a line for each file of these folders, once: under the
# heading of its folder, "- `x.c`: ...", or "- `x.[ch]`, `y.h`: ..." for several.
git ls-files lib filters demo_app tools examples tests/support | grep -v '/meson\.build$' |
    sort >"$ci_folder/log/files"
sed -n '/^## Code map/,/^## [^C]/p' README.md | tr -d '\`' | awk '
    /^### / { folder = $2 }
    /^- / {
        sub(/^- /, "")
        sub(/: .*|:$/, "")
        count = split($0, names, /, /)
        for (i = 1; i <= count; i++) {
            if (sub(/\.\[ch\]$/, "", names[i])) {
                print folder "/" names[i] ".c"
                print folder "/" names[i] ".h"
            } else
                print folder "/" names[i]
        }
    }' | sort >"$ci_folder/log/mapped"
comm -23 "$ci_folder/log/files" "$ci_folder/log/mapped" |
    holds "files without a line in the code map of README.md"
comm -13 "$ci_folder/log/files" "$ci_folder/log/mapped" |
    holds "lines of the code map without a file, or a file with two"

# A test that nobody builds tests nothing.
git ls-files 'tests/unit/test_*.c' | sed 's|.*/test_||; s|\.c$||' | while read -r name; do
    grep -q "'$name'" tests/unit/meson.build || echo "$name"
done | holds "unit tests that tests/unit/meson.build does not list"
git ls-files 'tests/threads/*.c' | while read -r file; do
    name=$(basename "$file" .c)
    grep -rq "'$name'" tests/meson.build tests/threads || echo "$file"
done | holds "thread programs that no meson.build lists"

git ls-files -s '*.sh' .ci/run | sed -n 's/^100755 [^\t]*\t//p' | while read -r file; do
    head -c 2 "$file" | grep -q '#!' || echo "$file"
done | holds "executable scripts without a first line that names their shell"
{ git grep -nIE '\b(TODO|FIXME|XXX)\b' -- ':!.ci/steps/20-tree.sh' ':!*.json' || true; } |
    holds "words of unfinished work"

echo "$passed passed, $failed failed"
((failed == 0))
