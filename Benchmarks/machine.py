"""The resources of a benchmark: a core for the server and others for the load, files, processor time, memory."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RELEASE = ROOT / ".build" / "release"
WORK = ROOT / ".build" / "bench"
# Programs in sbin are found by every user.
os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"


def number(name, default, least=1):
    """A setting of the benchmarks, HERALD_BENCH_<name>."""
    variable = f"HERALD_BENCH_{name}"
    text = os.environ.get(variable, str(default))
    if not text.isdigit() or int(text) < least:
        sys.exit(f"{variable}={text}: wanted a whole number from {least} on")
    return int(text)


def _cores(name, default):
    """Numbers of cores, as `1`, `1-3` or `1,3`."""
    variable = f"HERALD_BENCH_{name}"
    text = os.environ.get(variable)
    if text is None:
        return default
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        sys.exit(f"{variable}={text}: wanted numbers of cores, like 1 or 1-3")
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


_ALLOWED = sorted(os.sched_getaffinity(0))
SERVER_CORE = min(_cores("SERVER_CORE", {_ALLOWED[0]}))
LOAD_CORES = sorted(_cores("LOAD_CORES", set(_ALLOWED) - {SERVER_CORE}))
ON_SERVER_CORE = ["taskset", "-c", str(SERVER_CORE)]
ON_LOAD_CORES = ["taskset", "-c", ",".join(map(str, LOAD_CORES))]


def describe():
    """One line for the head of a report."""
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    text = (f"{model[1] if model else os.uname().machine}, {len(_ALLOWED)} cores; servers on core {SERVER_CORE}, loads on "
            f"{', '.join(map(str, LOAD_CORES))}; Linux {os.uname().release}")
    siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{SERVER_CORE}/topology/thread_siblings_list")
    shared = _siblings(siblings.read_text()) & set(LOAD_CORES) if siblings.exists() else set()
    if shared:
        text += f"; a load runs on the server core's other hardware thread ({', '.join(map(str, sorted(shared)))})"
    return text


def warn_if_busy():
    """Says so if others use this machine: what is measured beside them is worth little."""
    busy = os.getloadavg()[0]
    if busy > len(_ALLOWED) / 4:
        print(f"this machine is busy (load average {busy:.1f}): expect nothing of these rates; the CPU time for each counts",
              file=sys.stderr, flush=True)


def _siblings(text):
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def check(programs, products, connections):
    """Ends with one line if this machine cannot do what is asked of it; raises the limit of open files to the hard one."""
    if not LOAD_CORES or SERVER_CORE in LOAD_CORES or not {SERVER_CORE, *LOAD_CORES} <= set(_ALLOWED):
        sys.exit(f"the server needs one core and the load another; allowed are {_ALLOWED}, "
                 f"chosen {SERVER_CORE} and {LOAD_CORES} (HERALD_BENCH_SERVER_CORE, HERALD_BENCH_LOAD_CORES)")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; `make rivals` installs what the benchmarks compare with")
    missing = [product for product in products if not (RELEASE / product).exists()]
    if missing:
        sys.exit(f"not built: {', '.join(missing)} in {RELEASE}; Benchmarks/run builds them")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < connections + 200:
        sys.exit(f"one process would hold {connections:,} connections, but `ulimit -Hn` is {hard}: raise it, or choose "
                 "less by HERALD_BENCH_IDLE and HERALD_BENCH_MANY")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    memory = int(re.search(r"MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10
    if memory < 3 << 30:
        sys.exit(f"{memory >> 20} MiB of memory are free; the benchmarks take up to 3 GiB")
    space = shutil.disk_usage(ROOT / ".build").free
    if space < 3 << 30:
        sys.exit(f"{space >> 20} MiB are free under {ROOT / '.build'}; the benchmarks take up to 3 GiB")


def cpu_seconds(pid):
    """Processor time of a process and its children, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(cpu_seconds(int(child)) for child in children)


def exact_cpu_seconds(pid):
    """The same of the threads that there are now, to the nanosecond."""
    return _schedstat(pid, 0)


def core_wait_seconds(pid):
    """Time that the threads of a process and its children were ready and had no core, in seconds."""
    return _schedstat(pid, 1)


def _schedstat(pid, field):
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += int((task / "schedstat").read_text().split()[field])
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return total / 1e9 + sum(_schedstat(int(child), field) for child in children)


#: Whether this process may give real-time priority.
latencies_are_undisturbed = True


@contextlib.contextmanager
def undisturbed(pids):
    """Gives processes real-time priority as long as the `with` lasts: what others do on this machine is not in their times.

    Needs the right to do so (CAP_SYS_NICE); without it nothing changes, and `latencies_are_undisturbed` says so.
    """
    global latencies_are_undisturbed
    # Under `chrt --rr 1` all have it already, and keep it.
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        _schedule(pids, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        latencies_are_undisturbed = False
    try:
        yield
    finally:
        if latencies_are_undisturbed:
            _schedule(pids, *before)


def _schedule(pids, policy, parameters):
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setscheduler(int(task), policy, parameters)
            _schedule(map(int, children), policy, parameters)


def private_memory(pid):
    """Anonymous private memory in bytes: what connections cost, without shared libraries and file pages."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"Pss_Anon:\s+(\d+) kB", text)[1]) * 1024
