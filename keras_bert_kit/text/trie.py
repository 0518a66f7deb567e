"""A vocabulary as a trie in three integer arrays, so that a walk is nothing but `gather` and a comparison.

A trie spells every token along a path of symbols. Here it is stored as a double array (Aoe 1989): each node sits in a
slot, and its child by symbol `s` is in slot `base[node] + s`, if `parent[base[node] + s] == node`; if not, there is
no such child. Children of different nodes interleave in the same array, which is filled almost without holes: the
30,522 tokens of BERT's English vocabulary take about 1 MB, and a step of the walk costs two array reads.

Reference: J. Aoe, "An efficient digital search algorithm by using a double-array structure", 1989.
"""

from typing import NamedTuple

import numpy as np

# The slots of the two roots: where a word begins ("play") and where it goes on ("##ing").
WORD_ROOT, CONTINUATION_ROOT = 0, 1
NONE = -1


class Trie(NamedTuple):
    """A trie as a double array; all int32 (slots,).

    base: added to a symbol, gives the slot where the child by that symbol would be.
    parent: the slot of the node's parent; NONE in an empty slot.
    token: the id of the token that ends in this node, or NONE.
    """

    base: np.ndarray
    parent: np.ndarray
    token: np.ndarray


def build_trie(spellings, roots, tokens, num_symbols):
    """Builds the trie of tokens spelled in symbols.

    Args:
        spellings: list of int arrays, one a token, of symbols 0 to num_symbols - 1; none empty.
        roots: int array (tokens,), WORD_ROOT or CONTINUATION_ROOT: where each spelling begins.
        tokens: int array (tokens,), the id of each. No two spellings below the same root are equal.
        num_symbols: int, size of the alphabet.

    Returns:
        Trie. Its arrays are long enough that `base[node] + symbol` is inside for every node and symbol.
    """
    parents, symbols, ends = _number_nodes(spellings, roots, num_symbols)
    base = _place_children(parents, symbols, num_symbols)
    slots = np.concatenate([[WORD_ROOT, CONTINUATION_ROOT], base[parents[2:]] + symbols[2:]])
    num_slots = max(base.max(), slots.max()) + num_symbols + 1
    trie = Trie(*(np.full(num_slots, fill, np.int32) for fill in (0, NONE, NONE)))
    trie.base[slots] = base
    trie.parent[slots[2:]] = slots[parents[2:]]
    trie.token[slots[ends]] = tokens
    return trie


def _number_nodes(spellings, roots, num_symbols):
    """Numbers the nodes level by level. Returns parent and symbol of each node, and the last node of each spelling."""
    lengths = np.array([len(spelling) for spelling in spellings])
    offsets = np.cumsum(lengths) - lengths
    flat = np.concatenate(spellings).astype(np.int64)
    ends = np.array(roots, np.int64)  # where the walk along each spelling has come to
    parents, symbols = [np.array([NONE, NONE])], [np.array([NONE, NONE])]
    num_nodes = 2
    for depth in range(lengths.max()):
        longer = np.flatnonzero(lengths > depth)
        edges, child = np.unique(ends[longer] * num_symbols + flat[offsets[longer] + depth], return_inverse=True)
        parents.append(edges // num_symbols)
        symbols.append(edges % num_symbols)
        ends[longer] = num_nodes + child
        num_nodes += len(edges)
    return np.concatenate(parents), np.concatenate(symbols), ends


def _place_children(parents, symbols, num_symbols):
    """Finds a base for every node so that no two children share a slot: large families first, each where it fits."""
    base = np.zeros(len(parents), np.int64)
    order = np.lexsort((symbols[2:], parents[2:])) + 2
    families, first, sizes = np.unique(parents[order], return_index=True, return_counts=True)
    taken = np.zeros(len(parents) + 2 * num_symbols, bool)
    taken[[WORD_ROOT, CONTINUATION_ROOT]] = True
    lowest = 0
    for i in np.argsort(-sizes, kind="stable"):
        if sizes[i] == 1:
            break
        children = symbols[order[first[i] : first[i] + sizes[i]]]
        while taken[lowest : lowest + 64].sum() > 32:  # only children will fill what stays free below
            lowest += 64
        base[families[i]] = place = _first_fit(taken, lowest, children)
        taken = _grown(taken, place + num_symbols)
        taken[place + children] = True
    # An only child fits into any free slot that its symbol does not exceed: give low slots to low symbols.
    alone = np.flatnonzero(sizes == 1)
    only = symbols[order[first[alone]]]
    by_symbol = np.argsort(only, kind="stable")
    alone, only = alone[by_symbol], only[by_symbol]
    taken = _grown(taken, len(taken) + len(only) + num_symbols)
    free = np.flatnonzero(~taken)
    # The k-th slot is the k-th free one at or after its symbol, never one given already.
    earliest = np.searchsorted(free, only) - np.arange(len(only))
    slots = free[np.maximum.accumulate(earliest) + np.arange(len(only))] if len(only) else only
    base[families[alone]] = slots - only
    return base


def _first_fit(taken, lowest, children):
    """The smallest base, not below 0, for which the slots of all `children` are free."""
    start = max(lowest, children[0])
    window = 128
    while True:
        candidates = start + np.arange(window) - children[0]
        slots = candidates[:, None] + children
        blocked = taken[np.minimum(slots, len(taken) - 1)] & (slots < len(taken))
        fits = np.flatnonzero(~blocked.any(axis=1))
        if len(fits):
            return candidates[fits[0]]
        start += window


def _grown(taken, size):
    """`taken` with room for `size` slots."""
    return taken if len(taken) >= size else np.concatenate([taken, np.zeros(size, bool)])
