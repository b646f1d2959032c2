#!/bin/sh
# Checks the manual pages: no warning of groff (nor of mandoc, where it is installed), and
# weir.3 names every symbol that the library exports, weir_fcgx.3 those of libfcgi's form.
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

# named LIST PAGE
named() {
    while read -r symbol; do
        if ! grep -qw "$symbol" "$root/docs/man/$2"; then
            echo "$2 doesn't name $symbol"
            failed=1
        fi
    done <"$root/tests/data/$1"
}
named exports.txt weir.3
named exports_fcgx.txt weir_fcgx.3
exit $failed
