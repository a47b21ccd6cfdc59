"""`./dev lint`: what a compiler does not check. Each rule is a function from the tree to problems "file:line: text".

Exceptions are written where they apply, with a reason:  `// long: why` on or above a function,  `// long file: why` at the top of a file,
`// unused: why` on a row of a .def file.  (`#` in Python.)
"""
import concurrent.futures
import hashlib
import os
import re
import subprocess

import environment
from source_text import cpp_functions, python_functions, without_comments

FOLDERS = ("include", "src", "plugin", "tests", "bench", "pyexamples", "tools")
CPP, PYTHON = (".h", ".cpp", ".c"), (".py",)
FILE_LINES, FUNCTION_LINES, EXAMPLE_LINES = 600, 60, 40

# (what is fenced, pattern, where it may stand). Comments do not count.
FENCES = (
    ("CPython's internals", r"Py_BUILD_CORE|PY_VERSION_HEX|PY_MINOR_VERSION|\bpycore_|internal/pycore|\blocalsplus\b|\bprev_instr\b|->cframe\b",
     r"plugin/frame/"),
    ("Python.h", r"#\s*include\s*[<\"](Python\.h|plugin/py\.h)", r"plugin/|tests/cpp/plugin/"),
    ("torch's names", r"\baoti_torch_|\bat::|\bc10::|\bTHPVariable|\blibtorch|#\s*include\s*[<\"](torch|ATen|c10)/|ImportModule\(\"torch",
     r"plugin/torch/|plugin/framejit/|tests/|bench/|pyexamples/"),
    ("LLVM", r"#\s*include\s*[<\"]llvm|\bllvm::|\bLLVM[A-Z]\w+\(", r"src/codegen/"),
    ("the CUDA driver", r"#\s*include\s*[<\"]cuda\.h|\bcu(Init|Module|Launch|Mem|Stream|Graph|Device|Ctx|Func|Link)\w*\(|libcuda\b", r"src/runtime/cuda_"),
    ("getenv", r"\bgetenv\b", r"src/support/options\.cpp|tests/cpp/|bench/micro/"),
)
# Public text speaks of the project alone.
PRIVATE = re.compile(r"/(?:work|root|home/\w+|opt/wheels)/|\.\./shared\b")
ROW = re.compile(r"\b([A-Z][A-Z_]+)\(\s*(\w+)")
# How code names a row of each macro; other macros are found by the row's word with any prefix (op_add, do_LoadFast, BreakCode::item).
ROW_USE = {"OPTION": r"\bOption::{0}\b|\"{0}\"", "LOG_TOPIC": r"\bLogTopic::{0}\b", "DUMP_STAGE": r"\bDumpStage::{0}\b"}


class Tree:
    """The files under a root, read once."""

    def __init__(self, root):
        self.root, self.files = root, {}
        tops = [f for f in os.listdir(root) if os.path.isfile(os.path.join(root, f)) and f.endswith((".md", ".txt", ".toml"))]
        for name in tops + (["dev"] if os.path.exists(os.path.join(root, "dev")) else []):
            self._read(name)
        for folder in FOLDERS:
            for at, folders, names in os.walk(os.path.join(root, folder)):
                folders[:] = [f for f in folders if not f.startswith((".", "__"))]
                for name in names:
                    self._read(os.path.relpath(os.path.join(at, name), root))

    def _read(self, path):
        try:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                self.files[path] = file.read()
        except UnicodeDecodeError:
            pass    # an extension module, not a source

    def of(self, *endings):
        return {path: text for path, text in sorted(self.files.items()) if path.endswith(endings)}


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_fences(tree):
    for path, text in tree.of(*CPP).items():
        code = without_comments(text)
        for what, pattern, allowed in FENCES:
            if not re.match(allowed, path):
                for match in re.finditer(pattern, code):
                    yield f"{path}:{line_of(code, match.start())}: {what} ({match.group()}) only in {allowed}"


def check_private_text(tree):
    for path, text in tree.files.items():
        if path != os.path.join("tools", "lint.py") and not path.startswith("tests/py/test_dev"):
            for match in PRIVATE.finditer(text):
                yield f"{path}:{line_of(text, match.start())}: {match.group()} means nothing outside this machine"


def check_names(tree):
    for path in tree.files:
        if re.search(r"(^|[/_])(utils?|helpers?|misc|common)([/_.]|$)", path):
            yield f"{path}:1: name it after what it does"


def check_lengths(tree):
    for path, text in tree.of(*CPP, *PYTHON, ".def").items():
        lines = text.split("\n")
        count = len(lines) - (lines[-1] == "")
        limit = EXAMPLE_LINES if path.startswith("pyexamples") else FILE_LINES
        if count > limit and not re.search(r"(//|#) long file: \w", "\n".join(lines[:25])):
            yield f"{path}:1: {count} lines, at most {limit}"
        functions = python_functions(text) if path.endswith(PYTHON) else cpp_functions(text) if path.endswith(CPP) else []
        for name, first, last in functions:
            excused = re.search(r"(//|#) long: \w", "\n".join(lines[max(first - 4, 0):first]))
            if last - first + 1 > FUNCTION_LINES and not excused:
                yield f"{path}:{first}: {name} has {last - first + 1} lines, at most {FUNCTION_LINES}"


def check_readmes(tree):
    for folder in sorted({os.path.dirname(path) for path in tree.files if path.startswith(("plugin/", "src/"))}):
        if os.path.join(folder, "README.md") not in tree.files:
            yield f"{folder}:1: no README.md (what flows in and out, how to add one)"


def check_unused_rows(tree):
    product = {path: text for path, text in tree.of(*CPP, *PYTHON).items() if path.startswith(("include/", "src/", "plugin/"))}
    code = "\n".join(text if path.endswith(PYTHON) else without_comments(text) for path, text in product.items())
    words = set(re.findall(r"\w+", code))
    tails = {word.split("_", 1)[1] for word in words if "_" in word}
    for path, text in tree.of(".def").items():
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith(("//", "#")) or re.search(r"// unused: \w", line):
                continue
            for macro, name in ROW.findall(without_comments(line, keep_strings=False)):
                use = ROW_USE.get(macro)
                if not (re.search(use.format(name), code) if use else name in words or name in tails):
                    yield f"{path}:{number}: nothing uses {macro}({name})"


RULES = (check_fences, check_private_text, check_names, check_lengths, check_readmes, check_unused_rows)


def problems_of(root):
    tree = Tree(root)
    return [problem for rule in RULES for problem in rule(tree)]


# ---- the two clang tools ----

def clang_format(tree, fix):
    files = list(tree.of(*CPP))
    if not files:
        return []
    for _ in range(2 if fix else 0):        # what moves lines may need a second look
        subprocess.run(["clang-format-19", "-i", *files], cwd=tree.root, check=True)
    result = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *files], cwd=tree.root, capture_output=True, text=True)
    places = dict.fromkeys(re.findall(r"^([^\s:]+):(\d+)", result.stderr, re.M))
    first = {}
    for path, number in places:
        first.setdefault(os.path.relpath(os.path.join(tree.root, path), tree.root), number)
    return [f"{path}:{number}: not formatted (./dev lint --fix)" for path, number in first.items()]


def _tidy_key(tree, path):
    """What a file's result depends on: itself, its own includes of this project, the checks."""
    text = tree.files[path]
    included = [tree.files.get(base + name, "") for name in re.findall(r'#include "([^"]+)"', text) for base in ("", "include/")]
    with open(os.path.join(tree.root, ".clang-tidy")) as checks:
        return hashlib.sha256("\0".join([text, checks.read(), *included]).encode()).hexdigest()


def clang_tidy(tree, build, everything):
    """Every source that changed since it was last clean; results are kept in the build folder."""
    done = os.path.join(build, "tidy")
    os.makedirs(done, exist_ok=True)

    def one(path):
        stamp = os.path.join(done, path.replace("/", "_"))
        if not everything and environment.stamped(stamp, _tidy_key(tree, path)):
            return []
        result = subprocess.run(["clang-tidy-19", "-p", build, "--quiet", path], cwd=tree.root, capture_output=True, text=True)
        found = [line.replace(tree.root + "/", "") for line in result.stdout.splitlines() if re.search(r": (warning|error):", line)]
        if not found and result.returncode == 0:
            environment.write_stamp(stamp, _tidy_key(tree, path))
        return found or ([f"{path}:1: clang-tidy failed: {result.stderr.strip()[-300:]}"] if result.returncode else [])

    paths = [path for path in tree.of(".cpp", ".c") if path.startswith(("src/", "plugin/"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(dict.fromkeys(problem for found in pool.map(one, paths) for problem in found))


def main(everything=False, fix=False):
    python = environment.prepare()
    tree = Tree(environment.ROOT)
    problems = clang_format(tree, fix) + problems_of(environment.ROOT) + clang_tidy(tree, python.build, everything)
    print("\n".join(problems) if problems else "lint: nothing to say")
    if problems:
        print(f"lint: {len(problems)} problems")
    return int(bool(problems))
