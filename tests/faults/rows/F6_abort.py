#!/usr/bin/env python3
"""ABORT_REQUEST at every stage: END_REQUEST at once, the work stops, the connection serves on."""

from fastcgi import ABORT, COMPLETE, PARAMS, STDIN, begin, pairs, params, record, stream
from faults import App, Peer, runs, same, tell, within

POST = pairs(params(b"/length", b"POST", [(b"CONTENT_LENGTH", b"10")]))
WATCH = pairs(params(b"/watch?ms=3000"))

# What has been sent when the abort comes, and how many chains have begun and handlers been
# called by then.
STAGES = {
    "behind BEGIN": (begin(), 0, 0),
    "within the parameters": (begin() + record(PARAMS, POST[:30]), 0, 0),
    "before the body": (begin() + stream(PARAMS, POST), 1, 0),
    "within the body": (begin() + stream(PARAMS, POST) + record(STDIN, b"12345"), 1, 0),
    "behind the body, while the handler runs": (
        begin() + stream(PARAMS, WATCH) + record(STDIN),
        1,
        1,
    ),
}


def main():
    app = App(threads=8)
    before, told_before = app.sums(), app.told()
    rounds = runs(100, 4)
    watches, answered, wrong, begun, handled, connections = [], 0, [], 0, 0, 0
    asked_counts = 1
    for label, (data, begins, handles) in STAGES.items():
        with Peer(app.path) as peer:
            connections += 1
            for _ in range(rounds):
                peer.send(data)
                begun += begins
                handled += handles
                while begins:
                    asked_counts += 1
                    told = app.told()
                    if told[0] - told_before[0] == begun and told[2] - told_before[2] == handled:
                        break
                with app.stopwatch() as watch:
                    peer.send(record(ABORT))
                    answer = peer.answer()
                watches.append(watch)
                if answer.protocol_status != COMPLETE or answer.stdout:
                    wrong.append(label)
                if peer.ask().body != b"fast\n":
                    wrong.append(label + ", then a request")
                answered += 1
                begun += 1
                handled += 1
    same("wrong answers", [], sorted(set(wrong)))
    within(f"{len(STAGES)} stages: END_REQUEST", watches, 1)
    after = app.sums()
    same(
        "the app's counters agree",
        f"{connections + asked_counts} connections, {answered + asked_counts} requests",
        after.since(before),
    )
    for _ in range(1000):
        told = [now - then for now, then in zip(app.told(), told_before)]
        if told[0] == told[1]:
            break
    same(
        "begun, ended, handled, told that it is gone",
        [begun, begun, handled, rounds],
        told,
    )
    tell(app.is_sane(), "alive", "yes")


main()
