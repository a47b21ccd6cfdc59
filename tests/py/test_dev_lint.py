"""The linter finds what is planted, and only that. Each case is a small tree with one fault."""
import os
import shutil
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))
import lint  # noqa: E402
import source_text  # noqa: E402

BODY = "".join(f"    x += {i};\n" for i in range(60))
LONG = "namespace a {\n\nint f(int x) {\n" + BODY + "    return x;\n}\n\n}  // namespace a\n"


@pytest.fixture
def tree(tmp_path):
    """tree({path: text}) -> the linter's problems; README files are there."""
    def make(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
            for folder in [tmp_path / path, *(tmp_path / path).parents][1:]:
                if tmp_path in folder.parents and not (folder / "README.md").exists():
                    (folder / "README.md").write_text("what flows in and out\n")
        return lint.problems_of(str(tmp_path))
    return make


@pytest.mark.parametrize("path, text, said", [
    ("src/ir/a.cpp", "#include <Python.h>\n", "Python.h"),
    ("src/ir/a.cpp", "#include \"plugin/py.h\"\n", "Python.h"),
    ("plugin/guard/a.cpp", "#define Py_BUILD_CORE\n", "CPython's internals"),
    ("plugin/guard/a.cpp", "#if PY_VERSION_HEX > 1\n#endif\n", "CPython's internals"),
    ("plugin/guard/a.cpp", "void* f();\nvoid* x = aoti_torch_empty;\n", "torch's names"),
    ("src/ops/a.cpp", "at::Tensor* x;\n", "torch's names"),
    ("src/ir/a.cpp", "#include \"llvm/IR/IRBuilder.h\"\n", "LLVM"),
    ("src/runtime/a.cpp", "int r = cuInit(0);\n", "the CUDA driver"),
    ("src/ir/a.cpp", "const char* x = getenv(\"X\");\n", "getenv"),
    ("src/ir/a.cpp", "// see /" + "work/place\n", "means nothing outside"),
    ("src/ir/utils.h", "\n", "name it after what it does"),
    ("src/ir/a.cpp", "int x;\n" * 601, "601 lines"),
    ("src/ir/a.cpp", LONG, "f has 63 lines"),
    ("tools/a.py", "def g():\n" + "    x = 1\n" * 60, "g has 61 lines"),
    ("pyexamples/01_a.py", "x = 1\n" * 41, "41 lines, at most 40"),
    ("include/framejit/a.def", "OPTION(speed, flag)\n", "nothing uses OPTION(speed)"),
    ("include/framejit/a.def", "THING(alpha) THING(beta)\n", "nothing uses THING(alpha)"),
])
def test_planted_faults_are_found(tree, path, text, said):
    problems = tree({path: text})
    assert any(said in problem and problem.startswith(path) for problem in problems), problems


@pytest.mark.parametrize("files", [
    {"plugin/frame/a.cpp": "#define Py_BUILD_CORE\n#include <Python.h>\n"},
    {"plugin/torch/a.cpp": "void* x = aoti_torch_empty;\n"},
    {"src/codegen/a.cpp": "#include \"llvm/IR/IRBuilder.h\"\n"},
    {"src/runtime/cuda_driver.cpp": "int r = cuInit(0);\n"},
    {"src/ir/a.cpp": "// getenv, at::Tensor and Py_BUILD_CORE in a comment\n/* llvm:: too */\n"},
    {"src/ir/a.cpp": "// long file: a table\n" + "int x;\n" * 601},
    {"src/ir/a.cpp": LONG.replace("int f(int x) {", "// long: one switch over all kinds\nint f(int x) {")},
    {"include/framejit/a.def": "OPTION(speed, flag)\n", "src/ir/a.cpp": "auto x = option(Option::speed);\n"},
    {"include/framejit/a.def": "THING(later)  // unused: comes with training\nTHING(now)\n", "src/ir/a.cpp": "int make_now;\n"},
])
def test_allowed_places_and_excuses(tree, files):
    assert tree(files) == []


def test_missing_readme(tree, tmp_path):
    tree({"src/ir/a.cpp": "int x;\n"})
    os.remove(tmp_path / "src" / "ir" / "README.md")
    assert any(problem.startswith("src/ir:1: no README.md") for problem in lint.problems_of(str(tmp_path)))


def test_functions_are_recognised():
    text = '''
namespace n {
struct S {
    S() : a_{1} {}
    int get() const {
        return a_;
    }
    int a_ = [] { return 2; }();
};
static const int table[] = {1, 2};
template <class T> T max(T a, T b) {
    if (a > b) { return a; }
    return b;  // } not a brace
}
bool operator==(const S& a, const S& b) {
    return true;
}
const char* text() { return "{ ( ) }"; }
#define MACRO(x) { x
}  // namespace n
'''
    assert [(name, last - first + 1) for name, first, last in source_text.cpp_functions(text)] == [
        ("S", 1), ("get", 3), ("max", 4), ("operator==", 3), ("text", 1)]


@pytest.mark.skipif(not shutil.which("clang-format-19"), reason="clang-format-19 is not installed")
def test_format_is_checked_and_fixed(tmp_path):
    shutil.copy(os.path.join(ROOT, ".clang-format"), tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cpp").write_text("int  f( int x ){return x;}\n")
    assert lint.clang_format(lint.Tree(str(tmp_path)), fix=False) == ["src/a.cpp:1: not formatted (./dev lint --fix)"]
    lint.clang_format(lint.Tree(str(tmp_path)), fix=True)
    assert (tmp_path / "src" / "a.cpp").read_text() == "int f(int x) { return x; }\n"
    assert lint.clang_format(lint.Tree(str(tmp_path)), fix=False) == []
