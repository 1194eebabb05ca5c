"""Is the number of verbs in a sentence even or odd?

The prompt is a sentence that ends in a full stop. The machine then writes one token for each word,
the parity so far, and ``done``. Each of these tokens looks back once at a word, and knows the
parity before from itself.
"""

from compiler.graph import Graph

VERBS = ("sees", "chases", "eats", "likes", "runs", "sleeps")
OTHERS = ("the", "a", "cat", "dog", "bird", "fish", "big", "small", "and", "it")


def machine() -> Graph:
    graph = Graph()

    # What a token says of itself: these numbers are the embedding.
    verb = graph.input("verb")
    full_stop = graph.input("full_stop")
    odd = graph.input("odd")
    written = graph.input("written")
    for word in OTHERS:
        graph.token(word)
    for word in VERBS:
        graph.token(word, verb=1)
    graph.token(".", full_stop=1)
    graph.token("even", written=1)
    graph.token("odd", written=1, odd=1)
    graph.token("done")

    # Which word is next? As many tokens as were written, that is its position.
    index = graph.running_sum("index", written)
    is_verb, is_end = graph.fetch_position("word", index, {"is_verb": verb, "is_end": full_stop})

    # 0 + 1 is odd, 1 + 1 is even again.
    parity = graph.function("parity", odd + is_verb, {0: 0, 1: 1, 2: 0})
    graph.score_nearest(parity, {"even": 0, "odd": 1})
    graph.score("done", 10 * is_end - 5)
    graph.stop("done")
    graph.describe({"word": "the next word of the sentence"})
    return graph
