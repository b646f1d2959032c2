#!/bin/bash
# What libfcgi's form costs behind a real nginx, CPU a request: a handler of Weir's, one of
# libfcgi's as an endpoint (.parallel, and one at a time), a loop of its own compiled with
# weir/fcgx.h, the same program under weir-run, and libfcgi alone. See spine.sh, whose
# harness this is.
#
#   bench/fcgx.sh [ROUNDS [SECONDS]]         default: 7 rounds of 2 seconds each
set -euo pipefail
export with_fcgx=1
connections=${connections:-16} "$(dirname "$0")/spine.sh" "$@"
