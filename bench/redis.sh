#!/bin/bash
# What a decision by Redis costs behind a real nginx: see spine.sh, whose harness this is.
# At 16 connections, at 1, and at a thousand requests a second.
#
#   bench/redis.sh [ROUNDS [SECONDS]]        default: 7 rounds of 2 seconds each
set -euo pipefail
export with_redis=1
connections=16 "$(dirname "$0")/spine.sh" "$@"
connections=1 "$(dirname "$0")/spine.sh" "$@"
rate=1000 connections=64 "$(dirname "$0")/spine.sh" "$@"
