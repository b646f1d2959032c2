#!/bin/sh
# Validates the golden error bodies against the JSON schema of problem details.
#
#   schema.sh DATA_FOLDER
set -eu
# Debian's Python, which has the validator.
exec /usr/bin/python3 - "$1" <<'PYTHON'
import json
import pathlib
import sys

import jsonschema

data = pathlib.Path(sys.argv[1])
schema = json.loads((data / "problem-429.schema.json").read_text())
validator = jsonschema.Draft202012Validator(schema)
validated = failed = 0
for folder in sorted((data / "golden").iterdir()):
    asked = json.loads((folder / "input.json").read_text())
    if asked["format"] == "response_status":  # no problem details, and no status in it
        continue
    body = json.loads((folder / "expected.json").read_bytes().decode("utf-8"))
    faults = [error.message for error in validator.iter_errors(body)]
    if body["status"] != asked["status"]:
        faults.append("status is not that of the answer")
    for fault in faults:
        print(f"{folder.name}: {fault}")
    failed += bool(faults)
    validated += 1

# The schema must be able to refuse: a status in quotes is a common mistake.
if validator.is_valid({"status": "429"}) or validator.is_valid({"title": "no status"}):
    sys.exit("the schema refuses nothing")
print(f"{validated} bodies validated, {failed} failed")
sys.exit(1 if failed or validated < 10 else 0)
PYTHON
