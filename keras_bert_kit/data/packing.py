"""Packing: several short sequences share a row of fixed length, so that little of it is padding.

Attention then must not cross from one sequence into another, and positions begin anew in each: that is what
`BertEncoder` does with `input_sequence_ids`.
"""


def pack_sequences(lengths, row_length):
    """Puts every sequence into one of as few rows as it can, by best-fit decreasing.

    The longest come first, and each goes into the fullest row that still has room for it: the longest fit only into
    empty rows, and the short ones fill what they leave. That takes at most 11/9 of the fewest rows possible, plus 4;
    with lengths as texts have them, hardly more than the fewest.

    Args:
        lengths: ints (sequences,), tokens of each, from 1 to `row_length`.
        row_length: int, tokens of a row.

    Returns:
        List of rows, each an ascending list of the numbers of its sequences; every sequence is in one row. Rows are in
        the order of their first sequences. The same lengths always give the same rows.

    Raises:
        ValueError: A sequence is empty or longer than a row.

    Source: Johnson 1973, "Near-optimal bin packing algorithms"; for BERT, Krell et al. 2021,
    https://arxiv.org/abs/2107.02027.

    Example:

    >>> pack_sequences([3, 5, 2, 4, 1], row_length=8)
    [[0, 1], [2, 3, 4]]
    """
    lengths = [int(length) for length in lengths]
    if wrong := [length for length in lengths if not 1 <= length <= row_length]:
        raise ValueError(
            f"A sequence must have from 1 to row_length tokens. Received: row_length={row_length}, and {len(wrong)} "
            f"sequences of other lengths, such as {wrong[0]}. Cut them first."
        )
    rows, rows_with_room = [], [[] for _ in range(row_length + 1)]  # numbers of the rows that have so much room
    rooms = 0  # the same as a set in one integer: bit r says whether a row has room for exactly r more tokens
    for number in sorted(range(len(lengths)), key=lambda number: (-lengths[number], number)):
        length = lengths[number]
        enough = rooms >> length
        if enough:
            room = length + (enough & -enough).bit_length() - 1  # the lowest bit: the fullest row
            row = rows_with_room[room].pop()
            if not rows_with_room[room]:
                rooms &= ~(1 << room)
        else:
            room, row = row_length, len(rows)
            rows.append([])
        rows[row].append(number)
        rows_with_room[room - length].append(row)
        rooms |= 1 << (room - length)
    return sorted(sorted(row) for row in rows)
