"""The native engine on the default machine, and what happens where it cannot be built."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from c_programs import smallest_libc
from compiler import compile_program, isa
from compiler.errors import LimitError, TransputerError, UsageError
from executor.checkpoint import Checkpoint
from executor.config import ModelConfig
from executor.hull_engine import HullEngine
from executor.loading import build_checkpoint
from executor.native import NativeEngine, NativeUnavailable, build
from executor.native import engine as engine_module
from executor.native.describe import describe
from executor.native.generate import generate

PROGRAMS = Path(__file__).parent.parent / "programs"
SOURCE = "int one(void) { return 1; }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "native"


@cache
def machine() -> Checkpoint:
    return build_checkpoint()


def make() -> NativeEngine:
    return NativeEngine(machine(), say=lambda line: None)


def same_tokens(prompt: list[int], count: int) -> None:
    ours, theirs = make(), HullEngine(machine())
    ours.feed(prompt[:-1])
    theirs.feed(prompt[:-1])
    stop = machine().config.stop_tokens
    written = ours.extend(prompt[-1], stop, count).tolist()
    token, expected = prompt[-1], []
    while len(expected) < count and token not in stop:
        token = theirs.step(token)
        expected.append(token)
    assert written == expected


def prompt_of(name: str) -> list[int]:
    program = compile_program(PROGRAMS / name, libc=smallest_libc(name))
    stdin = (PROGRAMS / "data/hungarian10.txt").read_bytes() if name == "hungarian.c" else b""
    return [*machine().rom, *machine().encode([*program.tokens, *program.input_tokens((), stdin)])]


def random_prompt(seed: int) -> list[int]:
    """Random instructions with random immediates, mostly small; some memory and input."""
    rng = np.random.default_rng(seed)
    names = [name for name in isa.OPCODES if name in machine().ids]
    words = ["00", "00", "01", "00", "memory"]
    for _ in range(int(rng.integers(3))):
        words += ["08", "00", "00", "00", "segment", *map(isa.data_token, rng.bytes(9))]
    words.append("{")
    for _ in range(int(rng.integers(5, 60))):
        name = "i32.const" if rng.random() < 0.5 else str(rng.choice(names))
        immediate = rng.bytes(4) if rng.random() < 0.2 else bytes([int(rng.integers(9)), 0, 0, 0])
        words += [name, *map(isa.byte_token, immediate)]
    words += ["halt", "00", "00", "00", "00", "}", *map(isa.in_token, rng.bytes(3)), "eof"]
    return [*machine().rom, *machine().encode(words)]


@pytest.mark.parametrize("name", ["hungarian.c", "crc32.c", "gcd.c", "add.tok"])
def test_the_tokens_of_a_program(name: str) -> None:
    same_tokens(prompt_of(name), 700)


@pytest.mark.parametrize("seed", range(6))
def test_the_tokens_of_random_programs(seed: int) -> None:
    same_tokens(random_prompt(seed), 300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6, 100))
def test_the_tokens_of_more_random_programs(seed: int) -> None:
    same_tokens(random_prompt(seed), 2000)


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.[ct]*")), ids=lambda path: path.name)
def test_the_tokens_of_every_program(path: Path) -> None:
    same_tokens(prompt_of(path.name), 50_000)


def test_the_default_machine_is_recognised() -> None:
    """No head needs a general hull, the output is grouped, and no number is stored for a token."""
    found = generate(machine().config, machine().weights, specialised=False)
    assert {reader.kind.name for reader in found.heads} == {
        "self", "position", "quotient", "uniform", "extreme", "indexed", "few-valued",
    }  # fmt: skip
    assert len(found.families) <= 8 and len(found.singles) <= 20
    text = " ".join(describe(machine(), width=10_000).split(" "))
    assert "general" not in text and "stored for every token: 2 bytes\n" in text
    assert "specialised code: " in text and "the current token: " in text
    assert "it decides about most gates" in text and "how far back" in text
    assert "no path got shorter" in text and "by the paths that read them" in text
    assert "head 5.0 (the memory byte): with a position the token there is kept" in text
    assert "that head 2.2 (the opcode at the cursor) reads: " in text
    assert "forks of traces where a gate decides which token comes out" in text


def test_long_data_in_a_prompt_has_paths() -> None:
    """Also where no mark has been for long; words of data and input are groups of their own."""
    far = re.findall(r"/\* own (\d+), fetched 0, latest 0, \d+ or more back \*/", make().source)
    assert len(far) == len(set(far)) == 3


def test_the_description_fits_a_page_and_tells_slots_only_if_asked() -> None:
    text = describe(machine())
    assert max(map(len, text.splitlines())) <= 80
    assert (
        "slots after" not in text
        and "trace of fetched" not in text
        and "h5 the top of the stack; h8" in text
    )
    clumsy = r"\b1 (tokens|values|records|lines)\b|\b0 values|\b(best|table|few|sum)_\d"
    assert re.search(clumsy, text) is None
    everything = describe(machine(), everything=True)
    store = r"trace of fetched i32\.store, \S+ \S+ \S+ \d: up to 5 tokens, \d+ lines, 5 forks"
    assert re.search(store, " ".join(everything.split()))
    assert everything.count("slots after the heads") == machine().config.n_layers
    assert "integers -400 to 400: 3 byte; 9 last_byte" in everything


def test_memory_grows_by_at_most_eight_bytes_a_token() -> None:
    engine = make()
    prompt = prompt_of("hungarian.c")
    engine.feed(prompt[:-1])
    engine.extend(prompt[-1], machine().config.stop_tokens, 100_000)
    assert engine.nbytes <= 8 * len(engine) + 400_000
    assert len(engine) == len(prompt) + 100_000 - 1


def test_token_ids_are_checked() -> None:
    engine, size = make(), machine().config.vocab_size
    for call in (engine.step, lambda token: engine.feed([1, token])):
        with pytest.raises(UsageError, match=rf"not in 0\.\.{size - 1}"):
            call(size)
        with pytest.raises(UsageError):
            call(-1)


def test_an_engine_starts_again_for_itself() -> None:
    first = make()
    prompt = prompt_of("add.tok")
    first.feed(prompt[:-1])
    second = first.again()
    assert len(second) == 0
    second.feed(prompt[:-1])
    stop = machine().config.stop_tokens
    written = [engine.extend(prompt[-1], stop, 100).tolist() for engine in (first, second)]
    del first
    third = second.again()
    third.feed(prompt[:-1])
    written.append(third.extend(prompt[-1], stop, 100).tolist())
    assert written[0] == written[1] == written[2] and len(written[0]) == 17


def test_heads_of_another_width_are_refused() -> None:
    config = ModelConfig(3, d_model=4, n_heads=1, n_layers=1, d_ffn=1)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    with pytest.raises(UsageError, match="width 2"):
        NativeEngine(Checkpoint(config, ("a", "b", "c"), weights))


def test_a_number_that_is_not_finite_is_an_error() -> None:
    """A value beyond float64 in a key or a logit stops the engine for good."""
    config = ModelConfig(3, d_model=6, n_heads=3, n_layers=1, d_ffn=1)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    weights["tok.weight"][:, 2] = [1.0, 1e200, -1.0]
    weights["gate.0.weight"][0, 2] = weights["value.0.weight"][0, 2] = 1.0
    weights["down.0.weight"][3, 0] = 1.0
    weights["head.weight"][0, 3] = 1.0
    engine = NativeEngine(Checkpoint(config, ("a", "b", "c"), weights), say=lambda line: None)
    assert engine.step(0) == 0
    for _ in range(2):
        with pytest.raises(TransputerError, match="not finite after 1 tokens"):
            engine.step(1)


def test_a_sequence_that_is_as_long_as_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MOST_TOKENS", 5000)
    engine = make()
    prompt = prompt_of("hungarian.c")[:4000]
    engine.feed(prompt[:-1])
    assert len(engine.extend(prompt[-1], (), 9000)) == 1001
    for _ in range(2):
        with pytest.raises(LimitError, match="5,000 tokens, prompt included: the native engine"):
            engine.step(0)
    assert len(engine) == 5000


def test_running_out_of_memory_is_an_error(tmp_path: Path) -> None:
    """What was produced before is returned; then a limit is reported, twice the same."""
    script = tmp_path / "run.py"
    script.write_text(
        "import resource\n"
        "from executor.loading import build_checkpoint\n"
        "from executor.native import NativeEngine\n"
        "from compiler.errors import LimitError\n"
        "model = build_checkpoint()\n"
        "engine = NativeEngine(model, say=lambda line: None)\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 16_000_000,) * 2)\n"
        "token, counts = model.rom[0], []\n"
        "for _ in range(12):\n"
        "    try:\n"
        "        chunk = engine.extend(token, (), 1_000_000)\n"
        "        token = int(chunk[-1])\n"
        "    except LimitError as error:\n"
        "        counts.append(str(error))\n"
        "print(*counts[-2:], sep='\\n')\n"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=PROGRAMS.parent, check=True,
        env={**os.environ, "PYTHONPATH": str(PROGRAMS.parent)},
    )  # fmt: skip
    first, second = done.stdout.splitlines()
    assert first == second and first.startswith("out of memory after ")


def one(folder: Path | None = None, said: list[str] | None = None) -> int:
    """Build or find a library of one function and call it."""
    return int(build.load(SOURCE, (said if said is not None else []).append, "-O0").one())


def test_a_library_is_compiled_once_and_a_damaged_one_again(folder: Path) -> None:
    said: list[str] = []
    assert one(said=said) == 1 and len(said) == 1
    (path,) = folder.glob("engine-*.so")
    assert one(said=said) == 1 and len(said) == 1
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole[:100] + b"?" + whole[101:])  # a new file: the old one is in use
    assert one(said=said) == 1 and len(said) == 2
    assert path.read_bytes() == whole
    path.unlink()
    path.write_bytes(b"")
    assert one(said=said) == 1 and len(said) == 3
    assert [p.name for p in folder.iterdir()] == [path.name]


def test_many_can_start_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: one(), range(8))) == [1] * 8
    assert {path.suffix for path in folder.iterdir()} == {".so"}


def test_other_source_is_another_library(folder: Path) -> None:
    assert one() == 1
    assert build.load(SOURCE.replace("1", "2"), lambda line: None, "-O0").one() == 2


def test_without_a_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_compilers", lambda: iter(()))
    with pytest.raises(NativeUnavailable, match="no C compiler works: none was found"):
        one()


def test_a_compiler_that_fails_is_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = list(build._compilers())

    def broken_first() -> Iterator[tuple[str, ...]]:
        yield ("/bin/false",)
        yield ("/no/such/compiler",)
        yield from real

    monkeypatch.setattr(build, "_compilers", broken_first)
    assert one() == 1
    monkeypatch.setattr(build, "_compilers", lambda: iter([("/bin/false",), ("/no/such/cc",)]))
    with pytest.raises(NativeUnavailable, match="false: exit code 1; /no/such/cc: No such file"):
        build.load(SOURCE + "\n", lambda line: None, "-O0")


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary one serves, with a word; and where there is none either, a clear error."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "file" / "cache"))
    said: list[str] = []
    assert one(said=said) == 1
    assert "cannot be kept for the next time" in said[-1] and "Not a directory" in said[-1]
    monkeypatch.setattr(build.tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(NativeUnavailable, match="set TRANSPUTER_CACHE"):
        one()


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build._run

    def full(command: list[str], where: Path) -> str:
        if where == folder:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(command, where)

    monkeypatch.setattr(build, "_run", full)
    said: list[str] = []
    assert one(said=said) == 1
    assert "No space left on device" in said[-1]
    assert list(folder.iterdir()) == []


def test_the_source_can_be_kept(tmp_path: Path) -> None:
    engine = NativeEngine(machine(), keep_source=tmp_path / "c", say=lambda line: None)
    assert (tmp_path / "c" / "engine.c").read_text("utf-8") == engine.source
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the source"):
        NativeEngine(machine(), keep_source=tmp_path / "file" / "c", say=lambda line: None)


@pytest.mark.long
def test_the_bundled_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    assert all("ziglang" in command for command in build._compilers())
    same_tokens(prompt_of("add.tok"), 100)


SUM_OF_CODE = """
from hashlib import sha256
from executor.loading import build_checkpoint
from executor.native.generate import generate
model = build_checkpoint()
print(sha256(generate(model.config, model.weights, model.rom).source.encode()).hexdigest())
"""


@pytest.mark.long
def test_the_code_is_the_same_each_time() -> None:
    """Whatever the order of sets of names, which is another one for each process."""
    sums = {
        subprocess.run(
            [sys.executable, "-c", SUM_OF_CODE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("4", "10", "11")
    }
    assert len(sums) == 1 and len(sums.pop()) == 65
