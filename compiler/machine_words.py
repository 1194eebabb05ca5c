"""What the heads of our machines fetch and what their quantities are, in words, for readers."""

from __future__ import annotations

from compiler.graph import Graph

_TOKEN = {
    "one": "1",
    "position": "position of the token",
    "position_squared": "position squared",
    "byte": "byte of the token (opcodes: x of their point)",
    "nibble": "high nibble of the byte (opcodes: y of their point)",
    "carry": "carry of the byte",
    "low5": "byte mod 32 (others: weight of the next quotient digit)",
    "digit": "quotient digit times its weight",
    "ones": "ones of the byte",
    "mirror": "the byte with its bits reversed",
    "kind": "1 for tokens that are no byte",
    "branch": "1 for branch_taken (tables: slope of a line)",
    "delta": "change of the stack depth",
    "call_delta": "change of the call depth",
    "step": "how far the cursor moves",
    "jump": "1 if the bytes before move the cursor",
    "stores": "1 if the bytes before go to the stack",
}

_STATE = {
    **{f"byte_before_{n}": f"the byte {n} back" for n in (2, 3, 4)},
    "byte_before_1": "the byte before",
    **{f"bits_before_{n}": f"the bits of the byte {n} back" for n in (1, 2, 3, 4)},
    "last_token_that_is_no_byte": "the last token that is no byte",
    "last_other": "position of the last token that is no byte",
    "last_byte": "the byte before",
    "word": "the four bytes before as one number",
    "word_low5": "that number mod 32",
    "word_above_half": "how far that number is above 2^31",
    "word_mirrored": "that number with its bits reversed",
    "word: i32.clz": "leading zeros of that number",
    "word: i32.ctz": "trailing zeros of that number",
    "word: i32.popcnt": "ones of that number",
    "zeros: i32.clz": "the leading zeros of the four bytes before",
    "zeros: i32.ctz": "the trailing zeros of the four bytes before",
    "earlier_digits": "quotient digits in the tokens before",
    "digit_weight": "the weight of the next quotient digit",
    "quotient": "the quotient so far",
    "after_branch": "1 after branch_taken, digits written of a quotient",
    **{f"dist_beyond_{n}": f"bytes of this value before, beyond {n}" for n in (1, 2, 3)},
    "prefix": "lower bytes of this value as a fraction",
    **{f"prefix_{n}": f"the byte {n} back, if of this value" for n in (1, 2, 3)},
    "mean(depth, call_depth)": "the means of the changes of stack and call depth",
    "mean(cursor)": "the mean of the cursor's steps",
    "depth.mean": "mean change of the stack depth",
    "depth": "stack depth",
    "call_depth.mean": "mean change of the call depth",
    "call_depth": "call depth",
    "cursor.mean": "mean step of the cursor",
    "cursor": "position of the current instruction",
}

_INSTRUCTION = {
    "opcode": "the opcode at the cursor",
    "x": "x of the opcode's point",
    "y": "y of the opcode's point",
    "immediate": "the immediate of the instruction",
    "immediate_byte": "the immediate's byte to be written next",
    "index": "the immediate as an index",
    **{f"index_{n}": f"byte {n} of the immediate" for n in (0, 1)},
    "memory_size": "the size of the memory",
}

_STACK = {
    "push_depth": "stack depth after a push",
    "push_depth_squared": "that depth squared",
    "top": "the top of the stack",
    "second": "the second value of the stack",
    "third": "the third value of the stack",
    "top_position": "where the top of the stack was pushed",
    "second_position": "where the second value was pushed",
    "third_position": "where the third value was pushed",
    "amount": "the top of the stack mod 32",
    "second_magnitude": "how far the second value is above 2^31",
    "top_above_half": "how far the top is above 2^31",
    "second_above_half": "how far the second is above 2^31",
    "counts: i32.clz, i32.ctz": "the leading and trailing zeros of the top",
    "counts: i32.popcnt": "the ones of the top",
    "top: i32.clz": "leading zeros of the top",
    "top: i32.ctz": "trailing zeros of the top",
    "top: i32.popcnt": "ones of the top",
    "top_sign": "1 if the top is negative",
    "second_sign": "1 if the second value is negative",
    "signs": "sign of the top less that of the second",
    "top_not_zero": "1 if the top is not zero",
    "top_byte": "the byte of the top of the stack",
    "top_nibble": "high nibble of the top's byte",
    "second_byte": "the byte of the second value",
    "second_nibble": "high nibble of the second value's byte",
}

_ARITHMETIC = {
    "shift_row": "row of the shift table",
    "shift_offsets": "where a shift's two bytes are",
    "shift_factor": "the factor of a shift",
    "high_offset": "offset of a shift's high byte",
    "low_offset": "offset of a shift's low byte",
    "factor": "factor of a shift, weight of a byte",
    "window_low": "the low byte of a shift's window",
    "prefix_i": "the second value mod 256^(i+1)",
    "prefix_i_less_2": "the second value mod 256^(i-1)",
    "low_half": "the low half of the top",
    "accumulator": "what is mod 256 a byte of the result",
    **{f"floor_{n}": f"floor {n + 1} of 3, which take the accumulator mod 256" for n in (0, 1, 2)},
    "rest": "rest of a division so far",
    "scaled_divisor": "divisor times the digit's weight",
    "dividing": "1 in a division",
    "division": "the next quotient digit: rest divided by divisor",
    "and_high": "the AND of the high nibbles",
    "and_low": "the AND of the low nibbles",
    "common_bits": "the operands' bytes ANDed",
    "difference": "second value less the top",
    "less": "1 if second is less than top",
    "greater": "1 if second is greater than top",
}

_MEMORY = {
    "write_address": "memory address that this token writes",
    "write_address_squared": "that address squared",
    "read_address": "memory address to read",
    "memory": "the memory byte",
    "memory_byte": "the memory byte",
    "memory_address": "the address that was found",
    "found": "1 if the address was ever written",
    "excess": "how far an access leaves the memory",
    "local": "where the local, global or return record was written",
    "local_write": "local, global or record that this token writes",
    "local_write_squared": "that number squared",
    "local_read": "local, global or record to read",
    "local_position": "where the local was written",
    "local_byte": "the byte of the local",
    "key": "what this token writes: stack, local or memory",
    "key_squared": "that key squared",
    "source": "what is read besides the top",
    "place": "where it was written",
    "source_byte": "the byte of what is read besides the top",
    "miss": "how far it is from what was wanted",
}

_ANSWER = {
    "upper": "1 for the value's two upper bytes",
    "result": "the byte to write",
    "control": "the token to write instead of a byte",
    "due": "four times the bytes written of this value",
}

WORDS = _TOKEN | _STATE | _INSTRUCTION | _STACK | _ARITHMETIC | _MEMORY | _ANSWER
"""By name of a head or a quantity of the default or the base machine."""


def add_words(graph: Graph) -> None:
    """Describe what is in the graph."""
    known = graph.quantities.keys() | graph.nodes.keys()
    graph.describe({name: words for name, words in WORDS.items() if name in known})
