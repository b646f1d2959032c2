#!/usr/bin/env python3
"""All processes stand still, as in a paused machine, and go on: nothing is lost."""

import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import App, Stopwatch, ask, runs, same, within


def main():
    app = App()
    rounds, pause_s, times, answers = runs(5, 2), runs(30, 2), [], []
    for _ in range(rounds):
        family = [app.process.pid, *app.workers()]
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        asking = threading.Thread(target=lambda: answers.append(ask(app.path).status))
        asking.start()
        time.sleep(pause_s)
        with Stopwatch() as watch:
            for pid in family:
                os.kill(pid, signal.SIGCONT)
            asking.join(10)
        times.append(watch.ms)
        same("no worker was replaced for it", sorted(family[1:]), sorted(app.workers()))
    within(f"after {pause_s} s the request that waited is answered", times, 1000)
    same("with", [200] * rounds, answers)
    same("the app stops with status", 0, app.stop())


main()
