"""`./dev test`: every kind of test, one sum at the very end.

A kind that dies before it can report (a crash, a build without tests) counts as one failure, so that the sum never hides it.
"""
import glob
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

import environment
from environment import ROOT

SUITES = (("tests/py", 1500), ("tests/conformance", 1500))      # folder, seconds
EXAMPLE_SECONDS = 300


class Sum:
    def __init__(self):
        self.passed, self.failed, self.names = 0, 0, []

    def add(self, name, passed, failed):
        self.passed += passed
        self.failed += failed
        if failed:
            self.names.append(name)
        print(f"--- {name}: {passed} passed, {failed} failed", flush=True)


def run(command, seconds, **options):
    """The exit code; a hang is a failure like another."""
    sys.stdout.flush()
    try:
        return subprocess.run(command, timeout=seconds, **options).returncode
    except subprocess.TimeoutExpired:
        print(f"no end after {seconds} s: {' '.join(command)}")
        return 124


def cpp_tests(python, total, folder, words):
    """Boost.Test writes its totals as XML beside the readable log."""
    if not glob.glob(os.path.join(ROOT, "tests", "cpp", "**", "*.cpp"), recursive=True):
        return
    environment.build(python, folder, "framejit_tests")
    report = os.path.join(folder, "cpp_tests.xml")
    if os.path.exists(report):
        os.remove(report)
    filters = [f"--run_test=*{word}*" for word in words]
    code = run([os.path.join(folder, "framejit_tests"), "--log_level=error", "--report_level=short", "--report_format=XML",
                f"--report_sink={report}", "--catch_system_errors=no", *filters], 1200, cwd=ROOT)
    try:
        row = xml.parse(report).getroot().find("TestSuite").attrib
        passed = int(row["test_cases_passed"]) + int(row.get("test_cases_passed_with_warnings", 0))
        failed = int(row["test_cases_failed"]) + int(row.get("test_cases_aborted", 0))
    except (OSError, xml.ParseError, AttributeError):
        passed, failed = 0, 1
    total.add("C++", passed, max(failed, int(code != 0)))


def pytest(python, total, folder, seconds, words):
    if not glob.glob(os.path.join(ROOT, folder, "**", "test_*.py"), recursive=True):
        return
    report = os.path.join(python.build, folder.replace("/", "_") + ".xml")
    if os.path.exists(report):
        os.remove(report)
    command = [python.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--continue-on-collection-errors", f"--junitxml={report}", folder]
    code = run(command + (["-k", " or ".join(words)] if words else []), seconds, cwd=ROOT, env=python.variables())
    try:
        row = xml.parse(report).getroot().find("testsuite").attrib
        failed = int(row["failures"]) + int(row["errors"])
        passed = int(row["tests"]) - failed - int(row["skipped"])
    except (OSError, xml.ParseError, AttributeError):
        passed, failed = 0, 1
    nothing_selected = 5 if words else 0
    total.add(folder, passed, max(failed, int(code not in (0, nothing_selected))))


def examples(python, total, words):
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(ROOT, "pyexamples", "*.py"))):
        if words and not any(word in path for word in words):
            continue
        output = os.path.join(python.build, "example.log")
        with open(output, "w") as log:
            code = run([python.executable, path], EXAMPLE_SECONDS, env=python.variables(), stdout=log, stderr=subprocess.STDOUT)
        passed, failed = passed + (code == 0), failed + (code != 0)
        if code != 0:
            print(f"pyexamples/{os.path.basename(path)} ended with {code}:\n{open(output).read()}")
    if passed + failed:
        total.add("pyexamples", passed, failed)


def main(asan=False, cpp_only=False, py_only=False, words=()):
    python = environment.prepare()
    total = Sum()
    if asan:
        folder = os.path.join(ROOT, "build", "asan")
        environment.configure(python, folder, "-DFRAMEJIT_ASAN=ON", "-DFRAMEJIT_PLUGIN=OFF", "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
        cpp_tests(python, total, folder, words)
    else:
        if not py_only:
            cpp_tests(python, total, python.build, words)
        if not cpp_only:
            for folder, seconds in SUITES:
                pytest(python, total, folder, seconds, words)
            examples(python, total, words)
    if total.names:
        print("failed: " + ", ".join(total.names))
    print(f"{total.passed} passed, {total.failed} failed")
    return int(total.failed > 0 or total.passed == 0)
