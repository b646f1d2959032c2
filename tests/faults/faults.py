"""What rows in Python share: an app to torment, its counters, and how a finding is told."""

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
import time

from fastcgi import Peer, ask

BUILD = os.environ.get("WEIR_BUILD", "build")
SHORT = os.environ.get("FAULTS_SHORT") == "1"
PLANTED = os.environ.get("FAULTS_PLANTED") == "1"
ROOM_MS = 250 if SHORT else 0  # over every bound, for a machine that does other things
TICK_MS = 10 # of the timer wheel and the way to the close


def runs(long, short):
    return short if SHORT else long


# ---- telling -------------------------------------------------------------------------


def tell(holds, what, seen):
    print("ok" if holds else "FAILED", what, seen, sep="\t", flush=True)
    return holds


def same(what, expected, seen):
    """Holds where both are equal, and shows them where they aren't."""
    if expected == seen:
        return tell(True, what, f"{seen}")
    return tell(False, what, f"expected {expected}, seen {seen}")


def within(what, times, bound_ms, least_ms=0):
    """The slowest counts; none may be quicker than least_ms either. times: milliseconds,
    or stopwatches. Where one of these says that threads of app or client had to wait for
    a processor for more than a quarter of the bound, the run says nothing: it is set
    aside and told; more than a third of them are a failure."""
    watches = [one for one in times if isinstance(one, Stopwatch)]
    aside = set() if SHORT else {one for one in watches if one.waited_ms > bound_ms / 4}
    times = [one for one in times if not (isinstance(one, Stopwatch) and one in aside)]
    times = sorted(one.ms if isinstance(one, Stopwatch) else one for one in times)
    bound = bound_ms + ROOM_MS
    text = f"{bound_ms:g} ms" + (f" + {ROOM_MS} ms" if ROOM_MS else "")
    what = f"{what} within {text}" + (f", not before {least_ms:g} ms" if least_ms else "")
    if len(aside) > len(watches) / 3 or not times:
        return tell(False, what, f"{len(aside)} of {len(watches)} runs set aside: too busy a machine")
    return tell(
        times[-1] <= bound and times[0] >= least_ms,
        what,
        f"{len(times)} runs, median {times[len(times) // 2]:.2f}, slowest {times[-1]:.2f} ms"
        + (f", quickest {times[0]:.2f} ms" if least_ms else "")
        + (f"; {len(aside)} set aside" if aside else ""),
    )


def cut_within(what, cut_ms, bound_ms, least_ms):
    """The same for connections that the app closes when their time is over. It looks at
    its clock when it wakes up, so that the close may be TICK_MS behind it."""
    if None in cut_ms:
        return tell(False, f"{what} within {bound_ms} ms", f"{cut_ms.count(None)} were not at all")
    return within(what, cut_ms, bound_ms + TICK_MS, least_ms)


class Stopwatch:
    """with Stopwatch() as watch: ...; then watch.ms. With an app's schedstat files it also
    knows how long its threads and the client's waited for a processor."""

    def __init__(self, schedstats=()):
        self.schedstats = schedstats
        self.ms = None
        self.waited_ms = 0

    def waited_so_far_ms(self):
        return sum(int(os.pread(fd, 100, 0).split()[1]) for fd in self.schedstats) / 1e6

    def __enter__(self):
        self.waited_ms = -self.waited_so_far_ms()
        self.begin = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.ms = (time.perf_counter() - self.begin) * 1000
        self.waited_ms += self.waited_so_far_ms()

    def so_far_ms(self):
        return (time.perf_counter() - self.begin) * 1000


# ---- the app -------------------------------------------------------------------------


class Sums:
    """What the app has counted since its start."""

    def __init__(self, numbers):
        self.requests, self.refused, self.failed, self.accepted, self.open = numbers

    def since(self, before):
        """A text of what has been added."""
        return (
            f"{self.accepted - before.accepted} connections, "
            f"{self.requests - before.requests} requests"
        )


class App:
    """A running app on app.sock (and, with tcp=True, a port) in the present folder."""

    SUMS = re.compile(
        r"(\d+) requests, (\d+) of them refused, (\d+) failed; (\d+) connections, (\d+) open"
    )

    def __init__(self, *options, workers=2, threads=4, tcp=False, name="app", program=None):
        self.path = os.path.abspath(f"{name}.sock")
        self.log_path = os.path.abspath(f"{name}.log")
        listen = ["--listen", f"unix:{self.path}", "--socket-mode", "0666"]
        if tcp:
            listen += ["--listen", "tcp:127.0.0.1:0"]
        program = program or os.path.join(BUILD, "tests", "faults_app")
        command = [program, *listen, "--workers", str(workers), "--threads", str(threads)]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        atexit.register(self.kill)
        self.tcp = None
        self.schedstats = None
        self.wait_for_log("ready: ")
        if tcp:
            port = re.search(r"tcp:127\.0\.0\.1:(\d+)", self.log()).group(1)
            self.tcp = ("127.0.0.1", int(port))

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for_log(self, words, seconds=10):
        end = time.monotonic() + seconds
        while words not in self.log():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"the app does not say {words!r}:\n{self.log()}")
            time.sleep(0.01)

    def workers(self):
        """Their process ids."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    def stopwatch(self):
        if self.schedstats is None:
            paths = ["/proc/self/schedstat"]
            for pid in self.workers():
                paths += [f"/proc/{pid}/task/{tid}/schedstat" for tid in os.listdir(f"/proc/{pid}/task")]
            self.schedstats = [os.open(path, os.O_RDONLY) for path in paths]
        return Stopwatch(self.schedstats)

    def sums(self):
        """The workers' own counts, as SIGUSR1 has them logged."""
        before = len(self.SUMS.findall(self.log()))
        self.process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            found = self.SUMS.findall(self.log())
            if len(found) > before:
                return Sums(int(number) for number in found[-1])
            time.sleep(0.002)
        raise TimeoutError("the app does not tell its sums")

    def told(self):
        """The app's own counts: requests begun, ended, handled, told that it is gone."""
        return [int(word) for word in ask(self.path, b"/tell").body.split()]

    def settled(self, condition, seconds=10):
        """Waits until the condition of its sums holds; the last sums seen, and the ms."""
        with Stopwatch() as watch:
            while True:
                sums = self.sums()
                if condition(sums) or watch.so_far_ms() > seconds * 1000:
                    break
        return sums, watch.ms

    def memory_kib(self):
        """Resident memory of all workers."""
        total = 0
        for pid in self.workers():
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        return total

    def is_sane(self):
        """It lives, nobody died, and it answers on both sockets."""
        answers = [ask(self.path).status]
        if self.tcp:
            answers.append(ask(self.tcp).status)
        return all(status == 200 for status in answers) and "ended by signal" not in self.log()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """SIGTERM; its exit status, or None where it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


def beside(app, seconds, action):
    """Runs the action in a thread of its own and asks new requests meanwhile; what the
    action returns, and their milliseconds as stopwatches."""
    result, watches = [], []
    thread = threading.Thread(target=lambda: result.append(action()), daemon=True)
    thread.start()
    end = time.monotonic() + seconds
    while thread.is_alive() and time.monotonic() < end:
        with app.stopwatch() as watch:
            status = ask(app.path).status
        if status != 200:
            sys.exit(f"a request beside is answered {status}")
        watches.append(watch)
        time.sleep(0.002)
    thread.join(seconds)
    return result[0] if result else None, watches


__all__ = [
    "App",
    "PLANTED",
    "Peer",
    "ROOM_MS",
    "SHORT",
    "Stopwatch",
    "beside",
    "cut_within",
    "ask",
    "runs",
    "same",
    "tell",
    "within",
]
