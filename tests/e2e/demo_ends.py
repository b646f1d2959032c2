#!/usr/bin/env python3
"""However demo_app/run.sh ends, nothing of it is left: no process, no port, no folder.

Each case starts it on a terminal of its own, as a person does, and ends it in one way.
"""

import os
import pty
import re
import select
import shutil
import signal
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "../../demo_app/run.sh")
START_SECS = 300  # it may have to build first
END_SECS = 15

failed = 0
passed = 0


def check(what, expected, seen):
    global failed, passed
    if expected == seen:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}\n    expected: {expected}\n    seen:     {seen}")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def stat_of(pid):
    """Parent and start time, or None where there is no such process (or a zombie)."""
    fields = read(f"/proc/{pid}/stat").rpartition(") ")[2].split()
    return None if len(fields) < 20 or fields[0] == "Z" else (int(fields[1]), fields[19])


def below(root):
    """Every process below root with its start time, so that a number used again is not
    taken for it."""
    all_of_them = {int(pid): stat_of(pid) for pid in os.listdir("/proc") if pid.isdigit()}
    found = {}
    grew = True
    while grew:
        grew = False
        for pid, stat in all_of_them.items():
            if stat and pid not in found and (stat[0] == root or stat[0] in found):
                found[pid] = stat[1]
                grew = True
    return found


class Run:
    def __init__(self, *arguments):
        self.text = ""
        self.status = None
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(RUN, [RUN, *arguments])

    def read_more(self, seconds):
        ready, _, _ = select.select([self.terminal], [], [], seconds)
        if ready:
            try:
                self.text += os.read(self.terminal, 4096).decode(errors="replace")
            except OSError:  # the terminal's other end is closed: it has ended
                return False
        return True

    def until_started(self):
        end = time.monotonic() + START_SECS
        while "Ctrl-C" not in self.text:
            if not self.read_more(1) or time.monotonic() > end:
                print(self.text)
                raise SystemExit("run.sh does not start")
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", self.text).group(1))
        self.processes = below(self.pid)
        lines = " ".join(read(f"/proc/{pid}/cmdline") for pid in self.processes)
        self.folder = re.search(r"/tmp/weir\.\w+", lines).group(0)

    def hang_up(self):
        os.close(self.terminal)
        self.terminal = None

    def wait(self):
        """The exit status, or minus the signal; None where it did not end."""
        end = time.monotonic() + END_SECS
        while time.monotonic() < end:
            if self.terminal is not None:
                self.read_more(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return None

    def left(self):
        """Its processes that still run, given a moment."""
        end = time.monotonic() + END_SECS
        while True:
            left = [
                read(f"/proc/{pid}/cmdline").replace("\0", " ")
                for pid, born in self.processes.items()
                if (stat_of(pid) or (0, ""))[1] == born
            ]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.05)


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def ends(how, action, wanted_status):
    run = Run("--port", "0")
    run.until_started()
    # A shell, nginx with workers, the demo with workers.
    check(f"{how}: enough processes to end", True, len(run.processes) >= 6)
    action(run)
    check(f"{how}: exit status", wanted_status, run.wait())
    check(f"{how}: processes left", [], run.left())
    check(f"{how}: its port is free", True, is_free(run.port))
    return run


def check_ways():
    ways = [
        ("Ctrl-C", lambda run: os.write(run.terminal, b"\x03"), 130),
        ("SIGTERM", lambda run: os.kill(run.pid, signal.SIGTERM), 143),
        ("a closed terminal", lambda run: run.hang_up(), 129),
    ]
    for how, action, status in ways:
        run = ends(how, action, status)
        check(f"{how}: its folder is left", False, os.path.exists(run.folder))
    # Nobody can clean up after this one, but no process outlives it either.
    run = ends("SIGKILL", lambda run: os.kill(run.pid, signal.SIGKILL), -9)
    shutil.rmtree(run.folder)


def check_early():
    """Interrupted before it has started everything: at moments of its preparations."""
    for after_secs in (0.05, 0.2, 0.35, 0.5, 0.65):
        run = Run("--port", "0")
        run.read_more(after_secs)
        time.sleep(after_secs)
        run.processes = below(run.pid)
        os.kill(run.pid, signal.SIGTERM)
        check(f"SIGTERM after {after_secs} s: exit status", True, run.wait() in (143, -15))
        check(f"SIGTERM after {after_secs} s: processes left", [], run.left())


def check_used_port():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        run = Run("--port", str(port))
        run.processes = below(run.pid)
        check("a used port: exit status", 1, run.wait())
        check("a used port is named", True, f"port {port}" in run.text)
        check("a used port: processes left", [], run.left())


def main():
    check_ways()
    check_early()
    check_used_port()
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


sys.exit(main())
