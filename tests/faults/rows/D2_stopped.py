#!/usr/bin/env python3
"""A worker stopped or killed at each place in the store; others go on, none loses a charge."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import BUILD, runs, tell


def rounds(name, count):
    program = os.path.join(BUILD, "tests", "store", name)
    good = lines = 0
    for _ in range(count):
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        good += done.returncode == 0
        lines += len(done.stdout.splitlines())
        if done.returncode:
            print(done.stdout, done.stderr)
    return good, lines


def main():
    count = runs(50, 1)
    good, places = rounds("store_stops", count)
    tell(
        good == count and places > 0,
        "beside a process stopped or killed at each place nobody waits, no charge is lost",
        f"{good} of {count} rounds, {places} places and signals",
    )
    good, _ = rounds("store_locks", count)
    tell(
        good == count,
        "nobody is refused for a charge that is about to be undone",
        f"{good} of {count} rounds of 50",
    )


main()
