"""Long commands, told briefly: nothing when they are quick, one line of progress when they are not, everything when they fail."""
import shutil
import subprocess
import sys
import threading
import time

QUIET_SECONDS = 1.5     # shorter steps print nothing at all


class Progress:
    """One line on stderr that says what runs: redrawn on a terminal, printed at the start and the end elsewhere."""

    def __init__(self, what):
        self.what, self.start, self.detail, self.shown = what, time.monotonic(), "", False
        self.tty = sys.stderr.isatty()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._draw, daemon=True)

    def _line(self, text):
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(("\r\033[K" + text[:width]) if self.tty else text + "\n")
        sys.stderr.flush()

    def _draw(self):
        if self.done.wait(QUIET_SECONDS):
            return
        self.shown = True
        if not self.tty:
            return self._line(f"{self.what} ...")
        while not self.done.wait(0.2):
            self._line(f"{self.what} {time.monotonic() - self.start:4.0f} s  {self.detail}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.done.set()
        self.thread.join()
        if self.shown:
            self._line(f"{self.what}: {'failed' if kind else 'done'} in {time.monotonic() - self.start:.0f} s" + ("\n" if self.tty else ""))


def run(what, command, optional=False, **options):
    """Runs a command with its output kept; when it fails, shows the output and ends the program (optional: returns None)."""
    lines = []
    try:
        with Progress(what) as progress:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
            for line in process.stdout:
                lines.append(line)
                progress.detail = line.strip()
            if process.wait() != 0:
                raise subprocess.CalledProcessError(process.returncode, command)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        if optional:
            return None
        sys.stderr.write("".join(lines))
        sys.exit(f"{what}: {error}")
    return "".join(lines)
