"""A virtual machine on a disk that loses what was not flushed when the machine is killed; `Guest` is one that runs Herald.

QEMU emulates it in software. Its parts are Debian's: the kernel (`scripts/guest-kernel` fetches it), busybox, and Herald with the
libraries of this machine. Nothing needs root.
"""

import pathlib
import queue
import re
import shutil
import socket
import subprocess
import threading

from service import HERALD, ROOT
from volatile_disk import DiskServer

KERNEL = ROOT / ".build" / "soak" / "kernel"
#: In the order in which they are loaded. The kernel has the rest built in, ext4 too.
MODULES = (
    "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk", "virtio-rng",
    "failover", "net_failover", "virtio_net",
)
PROGRAMS = ("qemu-system-x86_64", "mke2fs", "busybox", "cpio", "setpriv")
#: A library that makes every sync succeed at once.
NO_SYNCS = pathlib.Path("/usr/lib/x86_64-linux-gnu/libeatmydata.so")
PORTS = {"api": 2197, "device": 5223}
#: Seconds from power on until Herald is ready, on a busy machine.
BOOT = 240
#: Herald keeps 64 MiB free.
DISK_MIB = 192

#: The first commands of a machine; those that it is there for follow.
INIT = """#!/busybox sh
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in %s; do insmod /$module.ko || echo "guest: no module $module"; done
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
mount -t ext4 -o ro /dev/vda /system || echo "guest: no system"
mount -t ext4 /dev/vdb /system/data || echo "guest: the file system is damaged"
mount --bind /proc /system/proc
mount --bind /dev /system/dev
mount -t tmpfs tmp /system/tmp
%s
poweroff -f
"""

SERVE = """chown -R 0:0 /system/data/herald
chroot /system /busybox env LD_LIBRARY_PATH=/libraries LD_PRELOAD="$(sed -n 's/.* preload=//p' /proc/cmdline)" \\
    /herald serve --data /data/herald --host 0.0.0.0 2>&1
echo "guest: herald ended with $?"
"""


class NoGuest(Exception):
    """The machine did not come up, or what it runs refused to start on its disk."""


def require():
    """Fails if this machine cannot run guests."""
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    absent += [str(file) for file in (KERNEL / "vmlinuz", NO_SYNCS) if not file.exists()]
    assert not absent, f"no virtual machine without {', '.join(absent)}: `make soak PART=power` installs them"


def run(*command, **options):
    result = subprocess.run([*map(str, command)], capture_output=True, check=False, **options)
    assert result.returncode == 0, f"{command[0]}: {result.stderr.decode()}"
    return result.stdout


def make_initial(folder, script):
    """Makes the initial file system of machines that run a script, with their disks mounted below /system."""
    initial = folder / "initial"
    busybox = shutil.which("busybox")
    for name in ("proc", "dev", "bin", "system"):
        (initial / name).mkdir(parents=True)
    shutil.copy(busybox, initial / "busybox")
    for applet in ("mount", "insmod", "ip", "chown", "chroot", "sed", "echo", "poweroff"):
        (initial / "bin" / applet).symlink_to("/busybox")
    for module in MODULES:
        shutil.copy(KERNEL / f"{module}.ko", initial)
    (initial / "init").write_text(INIT % (" ".join(MODULES), script.strip()))
    (initial / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(initial)) for path in initial.rglob("*"))
    archive = run("cpio", "--create", "--format=newc", "--quiet", cwd=initial, input=names.encode())
    (folder / "initial.cpio").write_bytes(archive)
    shutil.rmtree(initial)


def make_system(folder):
    """Makes what all guests have in common: the initial file system, and a disk with Herald and its libraries."""
    make_initial(folder, SERVE)
    system = folder / "system"
    for name in ("libraries", "lib64", "etc"):
        (system / name).mkdir(parents=True)
    (system / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    shutil.copy(shutil.which("busybox"), system / "busybox")
    run("strip", "--strip-debug", "-o", system / "herald", HERALD)
    shutil.copy(NO_SYNCS, system / "libraries")
    for place in re.findall(r"=> (/\S+) ", run("ldd", HERALD).decode()):
        shutil.copy(place, system / "libraries")
    shutil.copy("/lib64/ld-linux-x86-64.so.2", system / "lib64")
    make_system_disk(folder)


def make_system_disk(folder):
    """Makes the disk of programs from the folder `system`, which goes."""
    system = folder / "system"
    for name in ("proc", "dev", "tmp", "data"):
        (system / name).mkdir(parents=True)
    size = sum(path.stat().st_size for path in system.rglob("*") if path.is_file())
    make_disk(folder / "system.img", system, size // (1 << 20) * 5 // 4 + 16)
    shutil.rmtree(system)


def make_disk(image, folder, size):
    """Makes an ext4 file system of so many MiB that holds a copy of the folder."""
    # The superblock has two sectors. With a checksum, ext4 does not mount one of which only half was written.
    run("mke2fs", "-q", "-t", "ext4", "-O", "^metadata_csum", "-m", "0", "-d", folder, image, f"{size}M")


class Machine:
    """A machine with a disk: `switch_on` and `kill` as often as a test likes.

    `socket` is the name of the disk's socket in `folder`; `words` are added to the kernel's command line.
    """

    def __init__(self, folder, disk, socket, words="", memory=384):
        self.folder, self.disk, self.words, self.memory = folder, disk, words, memory
        #: All that the machine has printed since it was started.
        self.lines = []
        self.process = None
        self._server = DiskServer(disk, folder / socket)

    def switch_on(self, forwards):
        """Switches it on, with ports of this machine (QEMU's words) that lead to it. Waits for nothing."""
        self.disk.is_off.clear()
        self._server.expect()
        self.process = subprocess.Popen(
            [
                # It ends with the test, however that ends.
                "setpriv", "--pdeathsig", "KILL",
                "qemu-system-x86_64", "-accel", "tcg,tb-size=128", "-cpu", "max", "-m", str(self.memory), "-nodefaults",
                "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", KERNEL / "vmlinuz",
                "-initrd", self.folder / "initial.cpio",
                # On a busy machine, its timer may be late when the kernel looks for it.
                "-append", f"console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check{self.words}",
                "-drive", f"if=none,id=system,format=raw,readonly=on,file={self.folder / 'system.img'}",
                "-device", "virtio-blk-pci,drive=system",
                # A writeback cache: the guest sends its flushes, and QEMU itself keeps nothing of a disk behind NBD.
                "-drive", f"if=none,id=data,format=raw,cache=writeback,file=nbd+unix:///?socket={self._server.path}",
                "-device", "virtio-blk-pci,drive=data", "-device", "virtio-rng-pci",
                "-netdev", f"user,id=net,restrict=on,{forwards}", "-device", "virtio-net-pci,netdev=net,romfile=",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        self._ready = ready = queue.Queue()
        self.lines = lines = []

        def read(stream):
            for line in stream:
                lines.append(line.strip())
                if lines[-1] == "ready":
                    ready.put(True)
            ready.put(False)

        self._reader = threading.Thread(target=read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def kill(self):
        """Takes its power away. What its disk still holds in the cache is for the disk to decide."""
        self.process.kill()
        self.disk.is_off.set()
        self.process.wait()
        self._reader.join(timeout=10)
        self._server.wait(timeout=30)
        self.process = None

    def close(self):
        if self.process:
            self.kill()
        self._server.close()


class Guest(Machine):
    """A machine that runs Herald. To a provider or a device it is a service."""

    host = "127.0.0.1"

    def __init__(self, folder, disk, ca, syncs=True):
        super().__init__(
            folder, disk, "synced.socket" if syncs else "unsynced.socket", "" if syncs else f" preload=/libraries/{NO_SYNCS.name}"
        )
        self.ca = ca
        self.listeners = {}

    def start(self):
        """Switches it on, and waits until Herald is ready."""
        self.switch_on()
        try:
            is_ready = self._ready.get(timeout=BOOT)
        except queue.Empty:
            is_ready = False
        if not is_ready:
            self.kill()
            raise NoGuest("\n".join(self.lines[-30:]))
        return self

    def switch_on(self):
        self.listeners = dict(zip(PORTS, free_ports(len(PORTS))))
        super().switch_on(",".join(f"hostfwd=tcp:127.0.0.1:{self.listeners[name]}-:{port}" for name, port in PORTS.items()))


def free_ports(count):
    """Ports of the loopback that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
