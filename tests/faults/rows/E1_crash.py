#!/usr/bin/env python3
"""Workers that crash: replaced at once, and one always works under a storm of crashes."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from fastcgi import Cut, Late
from faults import App, Peer, Stopwatch, ask, runs, same, tell, within

SIGNALS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGKILL)


def replaced_ms(app, victim, number):
    with Stopwatch() as watch:
        os.kill(victim, number)
        while True:
            workers = app.workers()
            if victim not in workers and len(workers) == 2:
                break
            if watch.so_far_ms() > 5000:
                break
            time.sleep(0.001)
    return watch.ms


def check_single():
    """At most ten ends in ten seconds: below the brake, so that each app has nine."""
    times, left = [], runs(100, 9)
    while left > 0:
        app = App(name=f"single{left}")
        for i in range(min(left, 9)):
            times.append(replaced_ms(app, app.workers()[i % 2], SIGNALS[i % len(SIGNALS)]))
        left -= 9
        same("the app stops with status", 0, app.stop())
    within("a crashed worker is replaced", times, 100)


def check_storm():
    """All workers are killed every 50 ms: what clients wait for, retried when cut."""
    app = App(name="storm")
    seconds, waits, lost = runs(60, 5), [], 0
    end = time.monotonic() + seconds
    next_kill = time.monotonic()
    while time.monotonic() < end:
        if time.monotonic() >= next_kill:
            for pid in app.workers():
                os.kill(pid, signal.SIGKILL)
            next_kill = time.monotonic() + 0.05
        with Stopwatch() as watch:
            try:
                with Peer(app.path) as peer:
                    if peer.ask().status != 200:
                        lost += 1
            except (OSError, Cut, Late):
                lost += 1
        waits.append(watch.ms)
    within("under kills of all every 50 ms a request ends", waits, 100)
    good = len(waits) - lost
    tell(good > lost, "most of them are answered with 200", f"{good} of {len(waits)}")
    with Stopwatch() as watch:
        status = ask(app.path).status
    same("afterwards it answers", 200, status)
    same("the app stops with status", 0, app.stop())


check_single()
check_storm()
