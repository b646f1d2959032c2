#!/bin/bash
# What takes longer than a test may: eight clients, 100,000 requests each, of a program
# with a libfcgi loop on four threads. Red for a wrong answer, for memory that grows, for a
# thread that SIGTERM doesn't end.
#
#   tests/long.sh [BUILD]      a build without sanitizers; about a minute
set -euo pipefail
build=${1:-build}
exec "$build/tests/threads_pull" 100000
