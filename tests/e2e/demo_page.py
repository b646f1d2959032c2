#!/usr/bin/env python3
"""The demo's page in a real browser: page.py URL

Who you are, logging in, the burst and its refusals, logging out; no script error and
nothing that the page's own policy would have to refuse.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from browser import Browser  # noqa: E402

failed = 0
passed = 0


def check(what, expected, seen):
    global failed, passed
    if expected == seen:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}\n    expected: {expected}\n    seen:     {seen}")


def text(selector):
    return f"document.querySelector({json.dumps(selector)}).textContent"


def column(number, wanted_status):
    """The texts of a column in the rows of that status."""
    return (
        "[...document.querySelectorAll('#answers tr')]"
        f".filter((row) => row.dataset.status === '{wanted_status}')"
        f".map((row) => row.cells[{number}].textContent)"
    )


def burst(browser, count, wanted):
    browser.type_into("#count", str(count))
    browser.click("#burst button")
    check("the summary of a burst", wanted, browser.wait_for(text("#burst-answer"), wanted))
    check("a row for each answer", count,
          browser.evaluate("document.querySelectorAll('#answers tr').length"))


def log_in(browser, user, password, wanted):
    browser.type_into("#user", user)
    browser.type_into("#password", password)
    browser.click("#login button")
    check(f"logging in as {user}", wanted,
          browser.wait_for(text("#login-answer"), wanted))


def check_page(browser, url):
    browser.open(url)
    check("the title", "Weir demo", browser.evaluate("document.title"))
    check("who you are at first", "ip 127.0.0.1",
          browser.wait_for(text("#who"), "ip 127.0.0.1"))

    log_in(browser, "alice", "wrong", "403: Wrong user or password.")
    log_in(browser, "alice", "weir", "Logged in as alice.")
    check("who you are then", "user alice", browser.wait_for(text("#who"), "user alice"))
    check("a script sees the cookie", "", browser.evaluate("document.cookie"))

    burst(browser, 120, "120 requests: 100 x 200, 20 x 429.")
    left = [int(field.split("r=")[1].split(";")[0])
            for field in browser.evaluate(column(2, 200))]
    check("what RateLimit says is left", list(range(100)), sorted(left))
    waits = browser.evaluate(column(4, 429))
    check("each Retry-After is 1 to 60", True,
          len(waits) == 20 and all(1 <= int(wait) <= 60 for wait in waits))
    bodies = [json.loads(body) for body in browser.evaluate(column(6, 429))]
    check("each body says so", [("TooManyRequests", int(wait)) for wait in waits],
          [(body["code"], body["retry_after"]) for body in bodies])

    browser.click("#logout button")
    check("who you are at last", "ip 127.0.0.1",
          browser.wait_for(text("#who"), "ip 127.0.0.1"))
    burst(browser, 3, "3 requests: 3 x 200.")


def check_without_script(browser, url):
    """The forms alone: the browser sends fields and is sent back to the page."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(url)
    browser.type_into("#user", "bob")
    browser.type_into("#password", "weir")
    browser.evaluate("document.body.className = 'before'")
    browser.click("#login button")
    check("a form's log-in leads back to the page", url,
          browser.wait_for("document.readyState === 'complete' && "
                           "document.body.className === '' && location.href", url))
    browser.open(url + "whoami")
    check("who you are without a script", '{"type":"user","id":"bob"}',
          browser.evaluate("document.querySelector('pre').textContent"))


def main(url):
    with Browser() as browser:
        check_page(browser, url)
        check_without_script(browser, url)
        check("what the browser complained of", [], browser.complaints)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


sys.exit(main(sys.argv[1]))
