"""python -m framejit: run a script and report on it, show a saved report, describe the installation, the kernel cache.

  python -m framejit run [--report FILE] script.py [args]    FILE: .json, .html or text; without it the report goes to stderr
  python -m framejit report FILE                             shows a .json report again
  python -m framejit info                                    versions, machine, options
  python -m framejit cache                                   where compiled kernels are kept
"""
import json
import os
import platform
import runpy
import sys

import framejit


def save(report, path):
    if path.endswith(".html"):
        return report.to_html(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(report.to_dict(), indent=1) + "\n" if path.endswith(".json") else f"{report}\n")


def command_run(args):
    path = None
    if args[:1] == ["--report"]:
        path, args = (args[1:2] or [""])[0], args[2:]
    if not args or path == "":
        return usage("run needs a script")
    if not os.path.exists(args[0]):
        return usage(f"there is no script {args[0]}")
    sys.argv[:] = args
    sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
    try:
        runpy.run_path(args[0], run_name="__main__")
    finally:
        if path:
            save(framejit.report(), path)
        else:
            sys.stderr.write(framejit.report().text(color=sys.stderr.isatty() and "NO_COLOR" not in os.environ) + "\n")
    return 0


def command_report(args):
    if len(args) != 1:
        return usage("report needs one file")
    try:
        with open(args[0], encoding="utf-8") as file:
            report = framejit.Report.from_dict(json.load(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return usage(f"{args[0]} is not a saved report ({type(error).__name__}: {error})")
    print(report.text())
    return 0


def command_info(args):
    torch = framejit.versions.torch_version()
    print(f"framejit {framejit.__version__}  ({os.path.dirname(framejit.__file__)})")
    print(f"CPython {platform.python_version()}, torch {torch or 'not installed'}, {platform.platform()}")
    print(f"\noptions:\n{framejit.config}")
    return 0


def command_cache(args):
    print("Compiled kernels are kept in memory, for as long as the process lives: equal graphs compile once (FRAMEJIT_LOG=cache shows it).")
    print("This version writes nothing to disk.")
    return 0


def usage(problem=None):
    print(__doc__.strip(), file=sys.stderr if problem else sys.stdout)
    if problem:
        print(f"\nframejit: {problem}", file=sys.stderr)
    return 2 if problem else 0


def main(args):
    commands = {"run": command_run, "report": command_report, "info": command_info, "cache": command_cache}
    if not args or args[0] in ("-h", "--help"):
        return usage()
    if args[0] not in commands:
        return usage(f"unknown command '{args[0]}'; valid commands: {', '.join(commands)}")
    return commands[args[0]](args[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
