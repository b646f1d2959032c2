#!/usr/bin/env python3
"""Workers killed at any moment and at each place in the store: whole, nobody waits."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import BUILD, runs, tell


def main():
    kills = runs(10000, 300)
    program = os.path.join(BUILD, "tests", "store", "store_kills")
    done = subprocess.run([program, str(kills)], capture_output=True, text=True, check=False)
    dead = re.search(r"^(\d+) killed", done.stdout, re.MULTILINE)
    slowest = re.search(r"slowest (\d+) us", done.stdout)
    print(done.stdout, done.stderr)
    tell(
        done.returncode == 0 and dead is not None and int(dead.group(1)) >= kills,
        f"after {kills} kills under load no broken entry, nobody stuck, "
        "at most one charge a kill not accounted for",
        f"{dead.group(1) if dead else 'no'} killed, "
        f"slowest ask {slowest.group(1) if slowest else '?'} us",
    )


main()
