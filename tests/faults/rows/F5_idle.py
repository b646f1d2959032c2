#!/usr/bin/env python3
"""Ten kept idle connections for each thread: the next request is answered at once."""

from faults import App, Peer, ask, runs, same, tell, within


def main():
    workers, threads = 2, 4
    count = 10 * workers * threads
    app = App(workers=workers, threads=threads)
    before = app.sums()
    peers = [Peer(app.path) for _ in range(count)]
    for peer in peers:
        peer.ask()
    new, wrong = [], 0
    asked = runs(1000, 50)
    for _ in range(asked):
        with app.stopwatch() as watch:
            wrong += ask(app.path).status != 200
        new.append(watch)
    held = app.sums().open
    kept = []
    for peer in peers:
        with app.stopwatch() as watch:
            wrong += peer.ask().status != 200
        kept.append(watch)
    within(f"beside {count} idle connections on {workers * threads} threads: answered", new, 50)
    within("the idle ones, asked again: answered", kept, 50)
    same("answers that were not 200", 0, wrong)
    same("connections open meanwhile, by the app's count", count, held)
    after = app.sums()
    same(
        "the app's counters agree",
        f"{count + asked} connections, {2 * count + asked} requests",
        after.since(before),
    )
    tell(app.is_sane(), "alive", "yes")


main()
