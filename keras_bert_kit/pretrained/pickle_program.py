"""Runs the program in a pickle: a small stack machine that knows numbers, strings, containers and tensors.

Python's own unpickler is safe once `find_class` is restricted, but not robust: a name that is a tuple of a million
tuples ends the process when it is hashed, and a number of bytes is allocated because a file says so. Here a key of a
dictionary must be a string, nothing is ever called, and each instruction is a line that one can read.

Source: the opcodes as Python's `pickletools` describes them.
"""

import io
import pickletools

_LARGEST_PROGRAM_BYTES = 1 << 22  # names and shapes of a thousand layers take less than one megabyte
_MARK = object()
# Instructions that put their argument on the stack, whatever way it is written in the file.
_VALUES = set(
    """INT BININT BININT1 BININT2 LONG1 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE STRING BINSTRING
    SHORT_BINSTRING""".split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NEW = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}
_FROM_MARK = {"TUPLE": tuple, "LIST": list, "DICT": lambda items: _filled({}, items)}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def run_pickle(file, named, made, storage):
    """Runs the next pickle of a file.

    Args:
        file: binary file, at the first byte of the pickle; afterwards at the byte after it.
        named: function from a name such as "torch.FloatStorage" to what stands for it; raises ValueError.
        made: function from what stands for a callable, and its list of arguments, to the result; raises ValueError.
        storage: function from a persistent name, a list, to what stands for it; raises ValueError.

    Returns:
        What the program leaves: containers, strings, numbers, and what the functions returned.

    Raises:
        ValueError, LookupError: The pickle is damaged, too long, or has an instruction that tensors do not need.
    """
    start = file.tell()
    program = io.BytesIO(file.read(_LARGEST_PROGRAM_BYTES))  # so that no instruction can ask for more than is there
    result = _run(pickletools.genops(program), named, made, storage)
    file.seek(start + program.tell())
    return result


def _run(instructions, named, made, storage):
    stack, memo = [], {}
    for operation, argument, _ in instructions:
        name = operation.name
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _NEW:
            stack.append(_NEW[name]())
        elif name in _FROM_MARK:
            stack.append(_FROM_MARK[name](_to_mark(stack)))
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "GLOBAL":
            stack.append(named(argument.replace(" ", ".", 1)))
        elif name == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(named(f"{_string(module)}.{_string(attribute)}"))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(made(function, arguments))
        elif name == "BINPERSID":
            stack.append(storage(stack.pop()))
        elif name in ("APPEND", "SETITEM"):
            _add(stack, [stack.pop()] if name == "APPEND" else [stack.pop(), stack.pop()][::-1])
        elif name in ("APPENDS", "SETITEMS"):
            _add(stack, _to_mark(stack))
        elif name in ("POP", "BUILD"):  # the state of an OrderedDict holds versions of modules, which nobody needs
            stack.pop()
        elif name == "STOP":
            return stack.pop()
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"the instruction {name} of the pickle is not allowed")
    raise AssertionError("pickletools ends at STOP, or with an error")


def _to_mark(stack):
    """Takes everything above the last mark from the stack, and the mark."""
    items = []
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]


def _add(stack, items):
    """Adds items to the list, or pairs of them to the dictionary, on top of the stack."""
    if type(stack[-1]) is list:
        stack[-1].extend(items)
    elif type(stack[-1]) is dict:
        _filled(stack[-1], items)
    else:
        raise ValueError(f"something is added to a {type(stack[-1]).__name__}")


def _filled(dictionary, items):
    for key, value in zip(items[::2], items[1::2], strict=True):
        dictionary[_string(key)] = value
    return dictionary


def _string(value):
    if type(value) is not str:
        raise ValueError(f"a name is a {type(value).__name__}")
    return value
