#!/usr/bin/env python3
"""The parent is killed: its workers notice, drain and leave no orphan."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import App, Stopwatch, ask, runs, same, within


def runs_still(pid):
    """A dead one that nobody has waited for yet is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def main():
    times, rounds, good = [], runs(100, 5), 0
    for number in range(rounds):
        app = App(name=f"app{number}")
        workers = app.workers()
        good += ask(app.path).status == 200
        with Stopwatch() as watch:
            app.kill()
            while any(runs_still(pid) for pid in workers):
                if watch.so_far_ms() > 5000:
                    break
                time.sleep(0.001)
        times.append(watch.ms)
        os.unlink(app.path)
    same("each answered before", rounds, good)
    within("after the parent's death no worker is left", times, 1000)


main()
