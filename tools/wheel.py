"""`./dev wheel`: builds dist/framejit-*.whl and proves that it stands alone.

The proof runs in an environment made for it: torch and the wheel, nothing else, with no compiler to be found; a function must really be
served by compiled code there. The extension may ask the system only for what every Linux with a C++ runtime has.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import console
import environment
from environment import ROOT

SYSTEM_LIBRARIES = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so")
PROOF = """
import shutil, torch, framejit
assert not any(shutil.which(c) for c in ("cc", "gcc", "g++", "clang", "ld", "llc")), "a compiler is on PATH"
@framejit.compile(wait=True)
def f(x, w): return torch.nn.functional.gelu(x * w + 1).softmax(-1)
x, w = torch.randn(8, 64), torch.randn(64)
with torch.no_grad():
    for _ in range(3): got = f(x, w)
    assert torch.allclose(got, torch.nn.functional.gelu(x * w + 1).softmax(-1), atol=1e-6)
report = framejit.report(f)
assert report.calls["compiled"] and sum(g["kernels"] for g in report.graphs), report.text()
print("the wheel compiles:", repr(report))
"""


def libraries(wheel):
    """Shared libraries that the extension in the wheel asks for."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        [name] = [n for n in archive.namelist() if n.endswith(".so")]
        listed = subprocess.run(["ldd", archive.extract(name, folder)], capture_output=True, text=True).stdout
        return [line.split()[0].split("/")[-1] for line in listed.splitlines() if line.strip()]


def without_compilers():
    """PATH cut down to nothing: what remains cannot compile, link or assemble."""
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CC", "CXX", "LD_LIBRARY_PATH")}
    return dict(variables, PATH="/nonexistent")


def prove(python, wheel):
    folder = os.path.join(ROOT, "build", "wheel-proof")
    executable = os.path.join(folder, "bin", "python")
    if not os.path.exists(executable):
        console.run("creating build/wheel-proof", [environment.find_interpreter(python.version), "-m", "venv", folder])
        environment.install_torch(executable)
    console.run("installing the wheel", [executable, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel])
    return subprocess.run([executable, "-c", PROOF], env=without_compilers(), cwd=folder).returncode


def main():
    python = environment.prepare(targets=())
    folder = os.path.join(ROOT, "dist")
    for old in glob.glob(os.path.join(folder, "framejit-*.whl")):
        os.remove(old)
    variables = dict(os.environ, PATH=os.path.join(python.venv, "bin") + os.pathsep + os.environ["PATH"])
    console.run("building the wheel", [python.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", "-w", folder, ROOT], env=variables)
    [wheel] = glob.glob(os.path.join(folder, "framejit-*.whl"))
    foreign = [name for name in libraries(wheel) if not SYSTEM_LIBRARIES.match(name)]
    if foreign:
        sys.exit(f"the extension needs {', '.join(foreign)}, which a user's machine may lack")
    if prove(python, wheel) != 0:
        sys.exit("the wheel does not work in an empty environment")
    print(f"{os.path.relpath(wheel, ROOT)}  {os.path.getsize(wheel) / 1e6:.1f} MB")
    return 0
