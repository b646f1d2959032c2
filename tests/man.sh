#!/bin/sh
# Checks the manual pages: no warning of groff (nor of mandoc, where it is installed), and
# weir.3 names every symbol that the library exports.
#
#   man.sh SOURCE_ROOT
set -eu
export LC_ALL=C

root=$1
failed=0
for page in "$root"/docs/man/*.[0-9]; do
    warnings=$(groff -ww -mandoc -Tutf8 -z "$page" 2>&1)
    # A page that isn't installed yet can't be found; that is no fault of the page.
    if command -v mandoc >/dev/null; then
        warnings=$warnings$(mandoc -Tlint "$page" 2>/dev/null |
            grep -v 'referenced manual not found' || true)
    fi
    if [ "$warnings" ]; then
        echo "$warnings"
        failed=1
    fi
done

while read -r symbol; do
    if ! grep -qw "$symbol" "$root/docs/man/weir.3"; then
        echo "weir.3 doesn't name $symbol"
        failed=1
    fi
done <"$root/tests/data/exports.txt"
exit $failed
