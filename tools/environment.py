"""Set-up: Debian packages, one virtual environment and one build folder per Python version, the extension inside.

What was done is noted in stamps (a hash of what was asked for), so that a step whose input did not change costs nothing.
The packages' stamp lies in the environment it describes, because several checkouts may share one environment by a symlink.
"""
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

import console

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFAULT = "3.11"
DEBIAN = ("g++ llvm-19-dev libzstd-dev zlib1g-dev libboost-test-dev libboost-graph-dev libbenchmark-dev libfmt-dev ccache "
          "clang-format-19 clang-tidy-19 ninja-build").split()
PACKAGES = "numpy pytest pytest-timeout hypothesis rich jinja2 cmake ninja scikit-build-core".split()
TORCH = "torch==2.13.0+cpu"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
ZOO = ["transformers==5.24.0", "timm==1.0.9"]


def supported_versions():
    """Those that plugin/frame/ knows: cpython_311.cpp is CPython 3.11."""
    names = glob.glob(os.path.join(ROOT, "plugin", "frame", "cpython_3??.cpp"))
    return sorted("3." + os.path.basename(name)[len("cpython_3"):-len(".cpp")] for name in names)


class Python:
    """One prepared version: its interpreter in the environment, its build folder."""

    def __init__(self, version):
        tag = version.replace(".", "")
        self.version = version
        self.venv = os.path.join(ROOT, ".venv" if version == DEFAULT else f".venv-{version}")
        self.executable = os.path.join(self.venv, "bin", "python")
        self.build = os.path.join(ROOT, "build", f"py{tag}")
        self.site = os.path.join(ROOT, "build", "site")

    def tool(self, name):
        return os.path.join(self.venv, "bin", name)

    def variables(self):
        """The environment for programs: this checkout's framejit comes first, whatever the virtual environment points to."""
        paths = [self.site] + [p for p in os.environ.get("PYTHONPATH", "").split(":") if p]
        return dict(os.environ, PYTHONPATH=":".join(paths))


def stamped(path, value):
    """True when `path` notes that this value is done already."""
    try:
        with open(path) as f:
            return f.read() == value
    except OSError:
        return False


def write_stamp(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(value)


def digest(*parts):
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def debian_packages():
    """Installs the missing ones as root, otherwise ends with the line to run. Elsewhere than on Debian CMake says what it misses."""
    stamp = os.path.join(ROOT, "build", "stamps", "debian")
    if stamped(stamp, digest(*DEBIAN)) or not shutil.which("dpkg-query"):
        return
    known = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Status}\n", *DEBIAN], capture_output=True, text=True).stdout
    installed = {line.split()[0] for line in known.splitlines() if line.endswith("install ok installed")}
    missing = [name for name in DEBIAN if name not in installed]
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if missing and os.geteuid() != 0:
        sys.exit("framejit needs a few packages; run this line, then the same command again:\n  sudo apt-get update && sudo " + " ".join(install))
    if missing:
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        console.run("updating the package lists", ["apt-get", "update"])
        console.run("installing " + " ".join(missing), install, env=environment)
    write_stamp(stamp, digest(*DEBIAN))


def find_interpreter(version):
    """A CPython of this version with headers: from PATH, else the newest one that pyenv has."""
    def patch(path):
        digits = path.split("/versions/")[1].split("/")[0].split(".")
        return [int(d) if d.isdigit() else -1 for d in digits]

    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    pattern = os.path.join(pyenv, "versions", f"{version}.*", "bin", f"python{version}")
    candidates = [shutil.which(f"python{version}")] + sorted(glob.glob(pattern), key=patch, reverse=True)
    probe = ("import os, sys, sysconfig; assert os.path.exists(sysconfig.get_paths()['include'] + '/Python.h');"
             "print('%d.%d' % sys.version_info[:2], sys.executable)")
    for candidate in filter(None, candidates):
        found = subprocess.run([candidate, "-c", probe], capture_output=True, text=True)
        if found.returncode == 0 and found.stdout.split()[0] == version:
            return found.stdout.split(maxsplit=1)[1].strip()
    sys.exit(f"no CPython {version} with headers (Python.h) was found on PATH or under {pyenv}/versions; "
             f"install one, for example with `pyenv install {version}` or `apt-get install python{version}-dev python{version}-venv`")


def install_torch(executable):
    """A CPU build from where pip looks anyway, else from torch's own index (plain `torch` would bring gigabytes of CUDA)."""
    pip = [executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if console.run(f"installing {TORCH}", [*pip, TORCH], optional=True) is None:
        console.run(f"installing {TORCH} from {TORCH_INDEX}", [*pip, "--extra-index-url", TORCH_INDEX, TORCH])


def virtual_environment(python, zoo):
    if not os.path.exists(python.executable):
        console.run(f"creating {os.path.basename(python.venv)}", [find_interpreter(python.version), "-m", "venv", python.venv])
    pip = [python.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    steps = {"packages": PACKAGES}
    if python.version == DEFAULT:
        steps["torch"] = [TORCH]
    if zoo:
        steps["zoo"] = ZOO + steps.get("torch", [])  # else timm's torchvision brings the newest torch, and gigabytes of CUDA
    for name, packages in steps.items():
        stamp = os.path.join(python.venv, f"framejit-{name}.stamp")
        if stamped(stamp, digest(*packages)):
            continue
        if name == "torch":
            install_torch(python.executable)
        else:
            console.run("installing " + " ".join(packages), [*pip, *packages])
        write_stamp(stamp, digest(*packages))


def write_metadata(site):
    """What an installed wheel tells importlib.metadata: the version and the entry points (torch finds its backend there)."""
    with open(os.path.join(ROOT, "pyproject.toml")) as file:
        project = file.read()
    with open(os.path.join(ROOT, "plugin", "framejit", "__init__.py")) as file:
        version = re.search(r'^__version__ = "(.+)"', file.read(), re.M).group(1)
    entry_points = "".join(f"[{group}]\n{rows}\n" for group, rows in
                           re.findall(r"^\[project\.entry-points\.(\w+)\]\n((?:\w.*\n)+)", project, re.M)).replace('"', "")
    for name, text in (("METADATA", f"Metadata-Version: 2.1\nName: framejit\nVersion: {version}\n"), ("entry_points.txt", entry_points)):
        path = os.path.join(site, "framejit-development.dist-info", name)
        if not stamped(path, text):
            write_stamp(path, text)


def link_package(python):
    """build/site/framejit is the package as an installed one would be; a .pth makes the environment find it."""
    link = os.path.join(python.site, "framejit")
    if not os.path.islink(link):
        os.makedirs(python.site, exist_ok=True)
        os.symlink(os.path.join("..", "..", "plugin", "framejit"), link)
    write_metadata(python.site)
    if os.path.islink(python.venv):
        return      # shared with another checkout, which owns the .pth; `run` sets PYTHONPATH
    for folder in glob.glob(os.path.join(python.venv, "lib", "python3*", "site-packages")):
        pth = os.path.join(folder, "framejit-development.pth")
        if not stamped(pth, python.site + "\n"):
            write_stamp(pth, python.site + "\n")


def configure(python, folder, *definitions):
    command = [python.tool("cmake"), "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython_EXECUTABLE={python.executable}",
               f"-DCMAKE_MAKE_PROGRAM={python.tool('ninja')}", *definitions]
    stamp = os.path.join(folder, "configured.stamp")
    if not (stamped(stamp, digest(*command)) and os.path.exists(os.path.join(folder, "build.ninja"))):
        console.run(f"configuring {os.path.relpath(folder, ROOT)}", command)
        write_stamp(stamp, digest(*command))


def build(python, folder, *targets):
    what = f"building {os.path.relpath(folder, ROOT)}"
    console.run(what, [python.tool("ninja"), "-C", folder, "-j", str(os.cpu_count()), *targets])


def hold_lock():
    """One set-up at a time in a checkout: ninja and pip do not expect company. Closing the file, or leaving, gives it back."""
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    lock = open(os.path.join(ROOT, "build", "setup.lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def prepare(version=DEFAULT, zoo=False, targets=("_C",)):
    """Everything up to an importable framejit for one Python version."""
    if version not in supported_versions():
        sys.exit(f"framejit supports CPython {', '.join(supported_versions())}, not {version}")
    python = Python(version)
    lock = hold_lock()
    debian_packages()
    virtual_environment(python, zoo)
    configure(python, python.build, f"-DFRAMEJIT_TESTS={'ON' if version == DEFAULT else 'OFF'}")
    if targets:
        build(python, python.build, *targets)
    link_package(python)
    lock.close()
    return python
