"""A vocabulary as a trie in three integer arrays, so that a walk is nothing but `gather` and a comparison.

A trie spells every token along a path of symbols. Here it is stored as a double array (Aoe 1989): each node sits in a
slot, and its child by symbol `s` is in slot `base[node] + s`, if `parent[base[node] + s] == node`; if not, there is
no such child. Children of different nodes interleave in the same array, which is filled almost without holes: the
30,522 tokens of BERT's English vocabulary take about 1 MB, and a step of the walk costs two array reads.

Reference: J. Aoe, "An efficient digital search algorithm by using a double-array structure", 1989.
"""

from typing import NamedTuple

import numpy as np

# The slots of the two roots, where a word begins ("play") and where it goes on ("##ing"), and of a node without
# children, where a walk that found no transition may stay.
WORD_ROOT, CONTINUATION_ROOT, NOWHERE = 0, 1, 2
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
    lengths = np.array([len(spelling) for spelling in spellings], np.int64)
    offsets = np.cumsum(lengths) - lengths
    flat = np.concatenate([[], *spellings]).astype(np.int64)
    ends = np.array(roots, np.int64)  # where the walk along each spelling has come to
    parents, symbols = [np.array([NONE, NONE])], [np.array([NONE, NONE])]
    num_nodes = 2
    for depth in range(lengths.max(initial=0)):
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
    by_family = np.lexsort((symbols[2:], parents[2:])) + 2
    families, first, sizes = np.unique(parents[by_family], return_index=True, return_counts=True)
    taken = bytearray(len(parents) + num_symbols)  # 0 or 1; a bytearray finds the next 0 faster than any other array
    taken[WORD_ROOT] = taken[CONTINUATION_ROOT] = taken[NOWHERE] = 1
    lowest = 0
    for i in np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes > 1)]:
        children = symbols[by_family[first[i] : first[i] + sizes[i]]].tolist()
        while taken.count(1, lowest, lowest + 64) > 16:  # only children will fill what stays free below
            lowest += 64
        base[families[i]] = place = _first_fit(taken, lowest, children)
        for child in children:
            taken[place + child] = 1
    alone = first[sizes == 1]
    base[parents[by_family[alone]]] = _place_only_children(taken, symbols[by_family[alone]])
    return base


def _first_fit(taken, lowest, children):
    """The smallest base, not below 0, for which the slots of all `children` are free; makes room for them."""
    eldest, *others = children
    slot = max(lowest, eldest) - 1
    while True:
        slot = taken.find(0, slot + 1)
        if slot < 0 or slot - eldest + children[-1] >= len(taken):
            slot = len(taken) if slot < 0 else slot
            taken.extend(bytes(len(taken) + children[-1] + 1))
        place = slot - eldest
        if not any(taken[place + child] for child in others):
            return place


def _place_only_children(taken, symbols):
    """Bases for nodes with one child each: any free slot will do that is not below the symbol, so low ones go first."""
    order = np.argsort(symbols, kind="stable")
    free = np.flatnonzero(np.frombuffer(taken, np.uint8) == 0)
    free = np.concatenate([free, len(taken) + np.arange(len(symbols) + symbols.max(initial=0))])
    # In this order each takes the first free slot that it may have and that is not given yet.
    rank = np.arange(len(symbols))
    slots = free[np.maximum.accumulate(np.searchsorted(free, symbols[order]) - rank) + rank]
    base = np.empty(len(symbols), np.int64)
    base[order] = slots - symbols[order]
    return base
