"""Drives a headless Chromium over a pipe (Chrome DevTools Protocol), with nothing but
Python's own library: no port is opened and no driver is installed.

    with Browser() as browser:
        browser.open("http://127.0.0.1:8080/")
        browser.wait_for("document.title", "Weir demo")

The protocol: https://chromedevtools.github.io/devtools-protocol/ ; over a pipe every
message is JSON and ends with a NUL, descriptor 3 is read by the browser, 4 written.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

ANSWER_SECS = 20


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self):
        program = shutil.which("chromium")
        if program is None:
            raise BrowserError("chromium is not installed")
        self.folder = tempfile.mkdtemp(prefix="weir-browser.", dir="/tmp")
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.buffered = b""
        self.last_id = 0
        self.complaints = []
        to_browser, self.write_fd = os.pipe()
        self.read_fd, from_browser = os.pipe()
        self.process = subprocess.Popen(
            [
                # The shell puts the pipes where the browser expects them.
                "/bin/sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh",
                program,
                "--headless=new",
                "--remote-debugging-pipe",
                # The sandbox can't be made by root or in many containers; the only page
                # that is opened is our own.
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--no-proxy-server",
                f"--user-data-dir={self.folder}/profile",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=dict(os.environ, HOME=self.folder),
            pass_fds=(to_browser, from_browser),
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.session = None

    def __enter__(self):
        try:
            targets = self.call("Target.getTargets")["targetInfos"]
            page = next(target for target in targets if target["type"] == "page")
            self.session = self.call(
                "Target.attachToTarget", targetId=page["targetId"], flatten=True
            )["sessionId"]
            self.call("Page.enable")
            self.call("Runtime.enable")
            self.call("Log.enable")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Ends the browser with everything that it started, and removes its folder."""
        os.close(self.write_fd)
        os.close(self.read_fd)
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        self.process.wait()
        self.wait_for_the_group()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_for_the_group(self):
        for _ in range(100):
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)

    def call(self, method, **params):
        """Sends one command and returns its result; events in between are looked at."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        try:
            os.write(self.write_fd, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise BrowserError("the browser is gone: " + self.log_tail()) from None
        deadline = time.monotonic() + ANSWER_SECS
        while True:
            answer = self.receive(deadline)
            self.note(answer)
            if answer.get("id") != self.last_id:
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def note(self, event):
        """Keeps what a developer would see in red: errors of scripts, and refusals by the
        page's policy. An answer of 403 or 429 ("network") is none of these."""
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(event["params"]["exceptionDetails"])
        if event.get("method") == "Log.entryAdded":
            entry = event["params"]["entry"]
            if entry["source"] != "network":
                self.complaints.append(entry["text"])

    def receive(self, deadline):
        while b"\0" not in self.buffered:
            ready, _, _ = select.select(
                [self.read_fd], [], [], max(0, deadline - time.monotonic())
            )
            more = os.read(self.read_fd, 65536) if ready else b""
            if not more:
                raise BrowserError("the browser does not answer: " + self.log_tail())
            self.buffered += more
        message, self.buffered = self.buffered.split(b"\0", 1)
        return json.loads(message)

    def log_tail(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return log.read()[-2000:]

    def open(self, url):
        result = self.call("Page.navigate", url=url)
        if "errorText" in result:
            raise BrowserError(f"{url}: {result['errorText']}")
        self.wait_for("document.readyState", "complete")

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, wanted, seconds=ANSWER_SECS):
        """Waits until the expression has that value; returns what it was last."""
        end = time.monotonic() + seconds
        while True:
            seen = self.evaluate(expression)
            if seen == wanted or time.monotonic() > end:
                return seen
            time.sleep(0.05)

    def type_into(self, selector, text):
        """Types as a person does: focus, select all, insert."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        self.call("Input.insertText", text=text)

    def click(self, selector):
        """A real click in the middle of the element, scrolled into view."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )
