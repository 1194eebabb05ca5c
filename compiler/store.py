"""What is kept on disk from one start to the next: results that are functions of their inputs.

An entry is a value that JSON can hold and some bytes, named after a hash of all that it depends on.
It enters the folder whole, by one rename, so many processes may start at once. A damaged entry is
as good as none; where no folder can be written everything works without. What was not used for
longest goes when there is too much.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

MAGIC = b"transputer kept\x01"
"""The last byte is the version of this format."""
DIGEST = hashlib.sha256().digest_size
MOST_BYTES = 128 << 20
"""Size of a folder of entries beyond which the oldest go."""
SOURCE_SUFFIXES = (".py", ".json", ".c", ".h", ".wasm")


class Entry(NamedTuple):
    """What was kept: a value that came through JSON, and bytes."""

    value: Any
    blobs: tuple[bytes, ...]


def cache_folders(part: str) -> list[Path]:
    """Where things of one part may be kept, best first: in TRANSPUTER_CACHE alone if it is set,
    else in XDG_CACHE_HOME, ``~/.cache`` or, for an unusable home folder, the temporary folder."""
    chosen = os.environ.get("TRANSPUTER_CACHE", "")
    if chosen:
        return [Path(chosen).absolute() / part]
    candidates = []
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        candidates.append(Path(xdg) / "transputer")
    home = Path(os.path.expanduser("~"))
    if home.is_absolute() and home.is_dir() and home != Path(home.anchor):
        candidates.append(home / ".cache" / "transputer")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    candidates.append(Path(tempfile.gettempdir()) / f"transputer-{user}")
    return [folder / part for folder in candidates if not _foreign(folder)]


def _foreign(folder: Path) -> bool:
    """Whether a folder is somebody else's, in a shared temporary folder say."""
    try:
        return hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid()
    except OSError:
        return False


def make_folder(folder: Path) -> None:
    """Make a folder of the cache. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def digest(*parts: str | bytes) -> str:
    """A name for what depends on these: 32 hexadecimal digits."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(b"%d:" % len(data))
        total.update(data)
    return total.hexdigest()[:32]


@cache
def sources_digest(package: str) -> str:
    """A hash of all that a package is made of, as it is when first asked for."""
    parts: list[str | bytes] = []
    for path, data in _sources(files(package), package):
        parts += [path, data]
    return digest(*parts)


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.endswith(SOURCE_SUFFIXES):
            yield f"{name}/{path.name}", path.read_bytes()
        elif path.name != "__pycache__" and path.is_dir():
            yield from _sources(path, f"{name}/{path.name}")


def kept(kind: str, key: str, part: str = "kept") -> Entry | None:
    """The entry of this name, None if there is none that is whole."""
    for folder in cache_folders(part):
        path = folder / f"{kind}-{key}"
        try:
            data = path.read_bytes()
        except OSError:
            continue
        entry = _unpack(data)
        with contextlib.suppress(OSError):
            if entry is not None:
                os.utime(path)  # it was used
                return entry
            path.unlink()
    return None


def keep(
    kind: str, key: str, value: object, blobs: Sequence[bytes] = (), part: str = "kept"
) -> bool:
    """Keep an entry; whether that worked. One that would drive out many others is not kept."""
    data = _pack(value, blobs)
    if len(data) > MOST_BYTES // 8:
        return False
    for folder in cache_folders(part):
        try:
            make_folder(folder)
            _write(folder, f"{kind}-{key}", data)
        except OSError:
            continue
        evict(folder)
        return True
    return False


def evict(folder: Path, most_bytes: int = MOST_BYTES) -> None:
    """Remove the files of a folder that were not used for longest, until the rest is small."""
    found = []
    with contextlib.suppress(OSError):
        for item in os.scandir(folder):
            with contextlib.suppress(OSError):  # another process may have removed it
                state = item.stat(follow_symlinks=False)
                if item.is_file(follow_symlinks=False):
                    found.append((state.st_mtime_ns, state.st_size, item.path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most_bytes:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


def _write(folder: Path, name: str, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix="new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, folder / name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _pack(value: object, blobs: Sequence[bytes]) -> bytes:
    from zstandard import ZstdCompressor

    header = json.dumps([value, [len(blob) for blob in blobs]]).encode()
    content = b"".join([len(header).to_bytes(8, "little"), header, *blobs])
    packed = ZstdCompressor().compress(content)
    return MAGIC + hashlib.sha256(packed).digest() + packed


def _unpack(data: bytes) -> Entry | None:
    from zstandard import ZstdDecompressor

    said, packed = data[len(MAGIC) : len(MAGIC) + DIGEST], data[len(MAGIC) + DIGEST :]
    if not data.startswith(MAGIC) or hashlib.sha256(packed).digest() != said:
        return None
    content = ZstdDecompressor().decompress(packed)
    at = 8 + int.from_bytes(content[:8], "little")
    value, sizes = json.loads(content[8:at])
    blobs = []
    for size in sizes:
        blobs.append(content[at : at + size])
        at += size
    return Entry(value, tuple(blobs))
