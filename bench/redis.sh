#!/bin/bash
# What a decision by Redis costs behind a real nginx: see spine.sh, whose harness this is.
# At 16 connections, then at 1.
#
#   bench/redis.sh [ROUNDS [SECONDS]]        default: 7 rounds of 2 seconds each
set -euo pipefail
export with_redis=1
connections=16 "$(dirname "$0")/spine.sh" "$@"
connections=1 "$(dirname "$0")/spine.sh" "$@"
