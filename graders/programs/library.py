"""What is known of Python's own functions and modules: which calls change what they are given, or the world."""

# Builtins whose result may be, or hold, what they were given.
PASSING = frozenset("iter next zip enumerate reversed map filter min max getattr super".split())
CALLING = frozenset("map filter sorted min max list tuple set any all sum next".split())
READING = frozenset(
    """get items keys values copy count index join split rsplit splitlines format startswith endswith upper lower strip
    lstrip rstrip replace find rfind title capitalize isdigit isalpha isalnum isupper islower isspace encode decode
    partition rpartition zfill ljust rjust center union intersection difference issubset issuperset as_integer_ratio
    bit_length most_common elements __len__ __contains__ __getitem__ __subclasses__ mro""".split()
)
CONSTRUCTION = frozenset("__init__ __new__ __post_init__ __set_name__".split())
PURE_MODULES = frozenset(
    """math cmath itertools collections functools re string typing dataclasses fractions statistics copy json abc enum
    datetime time textwrap numbers types __future__""".split()
)
SETTINGS = ("set", "seed", "register", "filterwarnings", "simplefilter", "stack_size", "basicConfig", "signal", "chdir")
SWITCHES = frozenset("enable disable install reload putenv".split())
ENDINGS = frozenset("exit _exit abort main testmod run_docstring_examples".split())
IDLE = ENDINGS | frozenset(
    "show sleep write flush pprint pp plot figure time perf_counter timeit run info debug".split()
)
