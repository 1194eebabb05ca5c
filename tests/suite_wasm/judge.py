"""Judges the commands of a script: passed, refused with the reason, or failed.

A program of ours makes calls in sequence on one linked module and leaves all results on the stack,
so one run decides many assertions. A trap ends a run; the next run first repeats the calls that
changed the state.

Some calls cannot be repeated: those that were refused, those that trapped after they had written,
and those that were made before another instance was linked to theirs. Later assertions that may
depend on them are run one by one without them: one that holds has passed, one that does not is
refused, for the state is not what it should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler import wasm
from compiler.errors import CompileError, TransputerError, UnsupportedError
from compiler.frontend import to_wasm
from compiler.lower_context import width
from compiler.pipeline import compile_calls
from compiler.program import Program
from compiler.wasm_check import check_function
from compiler.wasm_types import Module
from executor.checkpoint import Checkpoint
from suite_wasm.effects import EVERYTHING, Effects, effects
from suite_wasm.linking import MARK, MARK_VALUE, empty, link, qualified
from suite_wasm.machine import Ending, run, writes_of_last_call
from suite_wasm.script import Command, Word

PASSED, REFUSED, FAILED = "passed", "refused", "failed"
_TRAPS = ("assert_trap", "assert_exhaustion")
_FITS = {
    "out of bounds memory access": "does not fit the memory",
    "out of bounds table access": "does not fit the table",
}
"""What the compiler says of a segment that would trap when the module is instantiated."""
_CANNOT_REPEAT = "depends on a call that cannot be repeated"
Call = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Verdict:
    """The outcome of one command; ``reason`` says why it is not ``passed``."""

    command: Command
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class _Made:
    """A call in a script, and the export of the linked module that it calls."""

    command: Command
    export: str

    @property
    def call(self) -> Call:
        """As ``compile_calls`` takes it."""
        action = self.command.action
        return self.export, (action.arguments if action else None) or ()


@dataclass(frozen=True)
class _Linked:
    """The moment at which a module of the script was instantiated, and the linked module then."""

    command: Command
    module: Module


@dataclass
class _Group:
    """Instances that import from each other, linked into one module; what happens, in order."""

    module: Module = field(default_factory=empty)
    events: list[_Made | _Linked] = field(default_factory=list)


@dataclass
class _Instance:
    """One instance of a script; without a group, the verdict on it and on all calls of it."""

    number: int
    group: _Group | None
    outcome: str = PASSED
    reason: str = ""


class Judge:
    """Judges scripts on one engine.

    Attributes:
        engine: of the model, or ``oracle`` for the interpreter of token programs.
        runs, tokens: how many programs were run, and the tokens of their traces.
    """

    def __init__(self, engine: str, checkpoint: Checkpoint | None) -> None:
        self.engine = engine
        self.checkpoint = checkpoint
        self.runs = 0
        self.tokens = 0

    def script(self, commands: list[Command]) -> Iterator[Verdict]:
        """The verdicts of all commands but ``register``."""
        groups: list[_Group] = []
        named: dict[str, _Instance] = {}
        registered: dict[str, _Instance] = {}
        for number, command in enumerate(commands):
            if command.kind == "module":
                instance, module = _instance(command, number, registered)
                named[command.name] = named[""] = instance
                if instance.group is None or module is None:
                    yield Verdict(command, instance.outcome, instance.reason)
                    continue
                if not instance.group.events:
                    groups.append(instance.group)
                instance.group.module = module
                instance.group.events.append(_Linked(command, module))
            elif command.kind == "register":
                registered[command.name] = named[command.register]
            elif command.action is not None:
                instance = named[command.action.module]
                if instance.group is None:
                    yield Verdict(command, instance.outcome, instance.reason)
                else:
                    export = qualified(instance.number, command.action.field)
                    instance.group.events.append(_Made(command, export))
            elif command.kind == "assert_uninstantiable":
                yield self._uninstantiable(command, number, registered)
            else:
                yield _invalid(command)
        for group in groups:
            yield from _Session(self, group).verdicts()

    def run(self, program: Program) -> Ending:
        """Run a program."""
        ending = run(program, self.engine, self.checkpoint)
        self.runs += 1
        self.tokens += ending.n_tokens
        return ending

    def _uninstantiable(
        self, command: Command, number: int, registered: dict[str, _Instance]
    ) -> Verdict:
        instance, module = _instance(command, number, registered)
        if module is None:
            return Verdict(command, instance.outcome, instance.reason)
        try:
            ending = self.run(compile_calls(module, []))
        except UnsupportedError as error:
            return Verdict(command, REFUSED, category(error))
        except CompileError as error:
            right = _FITS.get(command.text, "?") in error.reason
            return Verdict(command, PASSED if right else FAILED, "" if right else str(error))
        if ending.trap is not None and same_reason(ending.trap, command.text):
            return Verdict(command, PASSED)
        return Verdict(command, FAILED, f"instantiation: {ending.trap or 'no trap'}")


def _instance(
    command: Command, number: int, registered: dict[str, _Instance]
) -> tuple[_Instance, Module | None]:
    """A new instance, and its group's module with it."""
    assert command.file is not None
    try:
        module = wasm.decode(to_wasm(command.file).wasm, command.file.name)
    except UnsupportedError as error:
        return _Instance(number, None, REFUSED, category(error)), None
    except CompileError as error:
        return _Instance(number, None, FAILED, str(error)), None
    things = (*module.functions, *module.tables, *module.memories, *module.globals)
    names = {thing.imported.module for thing in things if thing.imported is not None}
    exporters = [registered[name] for name in names & set(registered)]
    group = exporters[0].group if exporters else _Group()
    if group is None or any(exporter.group is not group for exporter in exporters):
        return _Instance(number, None, REFUSED, "imports from instances that are apart"), None
    known = {name: i.number for name, i in registered.items() if i.group is group}
    return _Instance(number, group), link(group.module, module, number, known)


def _invalid(command: Command) -> Verdict:
    """A module that must be refused: as the front end does it, and then our own compiler."""
    assert command.file is not None
    try:
        module = wasm.decode(to_wasm(command.file).wasm, command.file.name)
        for function in module.functions:
            check_function(module, function)
    except CompileError:
        return Verdict(command, PASSED)
    return Verdict(command, FAILED, f"accepted, but: {command.text}")


def same_reason(ours: str, expected: str) -> bool:
    """The suite compares reasons by prefix."""
    return ours.startswith(expected) or expected.startswith(ours)


def category(error: UnsupportedError) -> str:
    """Why something is refused, in a few words that many refusals share."""
    instruction = error.place.instruction
    op = instruction.partition(" ")[0]
    if "f32" in op + error.reason or "f64" in op + error.reason:
        return "floating point"
    if op.startswith("i64."):
        return "i64 arithmetic"
    if error.reason.startswith("nothing provides the import"):
        return "imports a function of another module"
    if error.reason == "this instruction is not supported":
        return op
    return error.reason


class _Session:
    """Judges what happens in one group of instances, in order."""

    def __init__(self, judge: Judge, group: _Group) -> None:
        self.judge = judge
        self.group = group
        self.module = group.module
        self.history: list[tuple[Call, tuple[Word, ...]]] = []
        """Calls that changed the state, and their results."""
        self.lost: set[str] = set()
        """State that is not known any more."""
        self.unsupported: dict[str, str] = {}
        self.ran = False

    def verdicts(self) -> Iterator[Verdict]:
        """One for each event."""
        linked: list[_Linked] = []
        batch: list[_Made] = []
        for event in self.group.events:
            if isinstance(event, _Linked):
                yield from self._judge(batch)
                batch = []
                yield from map(self._instantiated, linked)
                linked = [event]
                self._enter(event.module)
                continue
            alone = self._doubtful(event)
            if alone:
                yield from self._judge(batch)
                batch = []
            refusal = self._refusal(event)
            if refusal:
                yield Verdict(event.command, REFUSED, refusal)
                if lost := self._effects(event).writes:
                    yield from self._judge(batch)
                    batch = []
                    self.lost |= lost
                continue
            batch.append(event)
            if alone or event.command.kind in _TRAPS:
                yield from self._judge(batch)
                batch = []
        yield from self._judge(batch)
        yield from map(self._instantiated, linked)

    def _enter(self, module: Module) -> None:
        """Go on with one more instance linked. Its segments and its start function would come
        before the calls that have to be repeated, and not after them."""
        if self.history:
            self.lost.add(EVERYTHING)
        self.module = module
        self.unsupported = {}
        self.ran = False

    def _refusal(self, made: _Made) -> str:
        """Why a call cannot be made; empty if it can."""
        action = made.command.action
        assert action is not None
        if made.export not in self.unsupported:
            self.unsupported[made.export] = self._compiles(made.export)
        if self.unsupported[made.export]:
            return self.unsupported[made.export]
        words = action.arguments is not None and made.command.expected is not None
        return "" if words else "references as values"

    def _doubtful(self, made: _Made) -> bool:
        """Whether the result may depend on a call that cannot be repeated."""
        return bool(self.lost & self._effects(made).uses) or EVERYTHING in self.lost

    def _compiles(self, export: str) -> str:
        """Why the compiler refuses a function, empty if it does not."""
        function = self.module.functions[self.module.exports[export].index]
        for type_ in function.type.params + function.type.results:
            if type_ not in "ilfd":
                return "references as values"
        try:
            compile_calls(self.module, [(export, (0,) * width(function.type.params))])
        except UnsupportedError as error:
            return category(error)
        except CompileError:
            pass  # the run will fail for this reason
        return ""

    def _effects(self, made: _Made) -> Effects:
        return effects(self.module, self.module.exports[made.export].index)

    def _judge(self, batch: list[_Made]) -> Iterator[Verdict]:
        """One run for all; if that does not end as expected, one for each."""
        if not batch:
            return
        problem, ending, program = self._attempt(batch)
        if problem and len(batch) > 1:
            for made in batch:
                yield from self._judge([made])
            return
        for made in batch:
            command, writes = made.command, self._effects(made).writes
            if problem:
                doubtful = self._doubtful(made)
                self.lost |= writes
                outcome = REFUSED if doubtful else FAILED
                yield Verdict(command, outcome, _CANNOT_REPEAT if doubtful else problem)
                continue
            if command.kind not in _TRAPS and writes:
                self.history.append((made.call, command.expected or ()))
            elif writes and ending and program and writes_of_last_call(program, ending.trace()):
                self.lost |= writes
            yield Verdict(command, PASSED)

    def _attempt(self, batch: list[_Made]) -> tuple[str, Ending | None, Program | None]:
        """What is wrong with a run of these calls, empty if nothing; and the run."""
        calls = [*self.history, *((made.call, made.command.expected or ()) for made in batch)]
        last = batch[-1].command
        trap = last.text if last.kind in _TRAPS else None
        if trap is not None:
            calls[-1:] = [((MARK, ()), (Word(MARK_VALUE),)), (calls[-1][0], ())]
        expected = [word for _, words in calls for word in words]
        try:
            program = compile_calls(self.module, [call for call, _ in calls])
            ending = self.judge.run(program)
        except TransputerError as error:
            return str(error).splitlines()[0], None, None
        self.ran = True
        return _difference(ending, expected, trap), ending, program

    def _instantiated(self, linked: _Linked) -> Verdict:
        """Whether a module is accepted, and can be instantiated."""
        if self.ran:
            return Verdict(linked.command, PASSED)
        try:
            ending = self.judge.run(compile_calls(linked.module, []))
        except UnsupportedError as error:
            return Verdict(linked.command, REFUSED, category(error))
        except TransputerError as error:
            return Verdict(linked.command, FAILED, str(error).splitlines()[0])
        problem = _difference(ending, [], None)
        return Verdict(linked.command, FAILED if problem else PASSED, problem)


def _difference(ending: Ending, expected: list[Word], trap: str | None) -> str:
    """What differs between a run and what it should have been; above the results of a run that
    traps lie operands of the call that did."""
    if trap is None and ending.trap is not None:
        return f"trap: {ending.trap}"
    if trap is not None and (ending.trap is None or not same_reason(ending.trap, trap)):
        return f"trap: {ending.trap or 'none'}, expected {trap}"
    found = list(ending.stack[: len(expected)] if trap is not None else ending.stack)
    same = len(found) == len(expected)
    if same and all(word.fits(bits) for word, bits in zip(expected, found, strict=True)):
        return ""
    return f"results {found[-4:]}, expected {expected[-4:]}"
