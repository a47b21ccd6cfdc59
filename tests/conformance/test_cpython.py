"""CPython's own tests with every Python frame of the process in framejit's interpreter: what passes plain must pass interpreted.

A short list, chosen for the instructions it covers. All of CPython's `test` package passes as well, but for `test_dis`, which asserts that
CPython's specialiser has run.
"""
import os
import subprocess
import sys

import framejit
import pytest

MODULES = """test_generators test_genexps test_listcomps test_scope test_exceptions test_exception_group test_except_star test_with test_super
test_contextlib test_unpack test_unpack_ex test_extcall test_keywordonlyarg test_fstring test_functools test_dataclasses test_decorators
test_class test_descr test_property test_metaclass test_coroutines test_asyncgen test_patma test_named_expressions test_opcodes test_raise
test_traceback test_sys_settrace test_code test_grammar test_call test_dynamic test_global test_augassign test_types""".split()
FEWEST_FRAMES = 1000    # fewer mean that the interpreter was not on

PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)    # a background job inherits it ignored, and some tests raise it
from test.libregrtest.main import main
interpreted = sys.argv.pop(1) == "interpreted"
if interpreted:
    from framejit._C import interpret_everything, interpreter_counters
    interpret_everything(True)
try:
    main()
finally:
    if interpreted and interpreter_counters()["frames"] < %d:
        sys.exit("the interpreter was not on")
""" % FEWEST_FRAMES


def run(module, how):
    package_folder = os.path.dirname(os.path.dirname(os.path.abspath(framejit.__file__)))
    path = os.pathsep.join(filter(None, (package_folder, os.environ.get("PYTHONPATH"))))
    environment = dict(os.environ, PYTHONHASHSEED="0", PYTHONPATH=path)
    environment.pop("FRAMEJIT_INTERPRET", None)
    return subprocess.run([sys.executable, "-c", PROGRAM, how, "-q", module], env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("module", MODULES)
def test_cpython(module):
    interpreted = run(module, "interpreted")
    if interpreted.returncode == 0:
        return
    if run(module, "plain").returncode != 0:
        pytest.skip("fails without the interpreter too")
    pytest.fail(interpreted.stdout[-3000:] + interpreted.stderr[-3000:])
