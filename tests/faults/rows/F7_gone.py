#!/usr/bin/env python3
"""Clients that leave in the middle of their body or before the answer; what they took stays taken."""

import os
import signal
import time

from fastcgi import PARAMS, STDIN, begin, pairs, params, record, request, stream
from faults import App, Peer, ask, runs, same, tell, within

POST = pairs(params(b"/length", b"POST", [(b"CONTENT_LENGTH", b"10")]))
MID_BODY = begin() + stream(PARAMS, POST) + record(STDIN, b"12345")


class Counts:
    """Questions for the app's own counts are connections and requests too."""

    def __init__(self, app):
        self.app, self.asked, self.connections = app, 0, 0

    def told(self):
        self.asked += 1
        return self.app.told()

    def peer(self, address):
        self.connections += 1
        return Peer(address)


def leave(peer, how):
    if how == "reset":
        peer.reset()
    else:
        peer.close()


def mid_body(app, counts, address, how):
    """The time until the chain has ended."""
    begun, ended = counts.told()[:2]
    peer = counts.peer(address)
    peer.send(MID_BODY)
    while counts.told()[0] == begun:
        pass
    with app.stopwatch() as watch:
        leave(peer, how)
        while counts.told()[1] == ended:
            if watch.so_far_ms() > 5000:
                break
    return watch


def before_answer(app, counts, address, how, after_s, at_once=False):
    """The time until the handler has heard of it. at_once: the request is there when the
    connection is accepted, so that the app has no reason to watch it."""
    handled, gone = counts.told()[2:]
    for pid in app.workers() if at_once else ():
        os.kill(pid, signal.SIGSTOP)
    peer = counts.peer(address)
    peer.send(request(b"/watch?ms=3000"))
    for pid in app.workers() if at_once else ():
        os.kill(pid, signal.SIGCONT)
    while counts.told()[2] == handled:
        pass
    time.sleep(after_s)
    with app.stopwatch() as watch:
        leave(peer, how)
        while counts.told()[3] == gone:
            if watch.so_far_ms() > 5000:
                break
    return watch


def main():
    app = App("--write-time", "2s", threads=8, tcp=True)
    counts = Counts(app)
    before, told_before = app.sums(), app.told()
    counts.asked += 1
    rounds = runs(100, 3)
    places = (("unix", app.path, "close"), ("TCP", app.tcp, "close"), ("TCP", app.tcp, "reset"))
    left = 0
    for what, address, how in places:
        watches = [mid_body(app, counts, address, how) for _ in range(rounds)]
        left += rounds
        within(f"{what}, {how} in the body: the request ended", watches, 10)
        for after_s in (0, 0.04):
            watches = [before_answer(app, counts, address, how, after_s) for _ in range(rounds)]
            left += rounds
            when = f"{after_s * 1000:.0f} ms after its handler began"
            within(f"{what}, {how} {when}: it is told", watches, 10)
        watches = [
            before_answer(app, counts, address, how, 0, at_once=True) for _ in range(rounds)
        ]
        left += rounds
        within(f"{what}, {how}, the request came with the connection: it is told", watches, 10)

    # Leaves while a large answer is on its way: no SIGPIPE, no thread that writes on.
    for _ in range(rounds):
        peer = counts.peer(app.path)
        peer.send(request(b"/large?kib=20000"))
        peer.record()
        peer.close()
    left += rounds

    # 5 a day: three who leave once they have begun, then three who wait. (Who is gone when
    # the app first looks is not begun, and charged nothing.)
    for _ in range(3):
        begun = counts.told()[0]
        peer = counts.peer(app.path)
        peer.send(request(b"/limited"))
        while counts.told()[0] == begun:
            pass
        peer.close()
    statuses = [ask(app.path, b"/limited").status for _ in range(3)]
    same("a limit of 5 after three who left: the next three", [200, 200, 429], statuses)

    after, _ = app.settled(lambda sums: sums.open == 0)
    same(
        "connections by the app's count",
        counts.connections + counts.asked + 3,
        after.accepted - before.accepted,
    )
    told = app.told()
    same("requests begun and not ended, connections open", (0, 0), (told[0] - told[1], after.open))
    same(
        "begun by the app's own count",
        left + 3 + 3,
        told[0] - told_before[0],
    )
    tell(app.is_sane(), "alive", "yes")


main()
