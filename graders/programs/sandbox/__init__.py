"""Running hostile programs against trusted tests so that a pass cannot be faked.

The one idea: the program never shares a process with the tests. The *judge* runs the tests; the *player*, another
process that the kernel shuts in as far as it allows, runs the program and answers the judge's requests ("call
`f` with these arguments") with plain values. All comparing happens in the judge, where no code of the program ever
is, and so does reaching the last assertion. The judge proves it to the grader by a nonce that reaches it after the
player was forked. What a program can do, whatever it patches, forges, reads or kills, is give wrong answers.

    wire         what travels between the two            supervisor   starts both, bounds them, ends everything
    handle       the judge's stand-in for an object      isolation    namespaces, Landlock, privileges, limits
    judge        runs the tests                          processes    finds, measures and ends processes
    player       runs the program

Accepted trade-offs:

- Plain values cross as copies. Changes that a call makes to containers in its arguments are copied back, so sorting
  in place works; a list kept by the program and changed by the tests later is not shared.
- An object of the program's own class is asked by the tests through its methods, and the answers are its own. A test
  such as `assert f(x).startswith("a")` is therefore only as good as `f(x)` being text. Comparison and arithmetic with
  plain values are never asked (see `handle`), so `assert f(x) == 2` and `abs(f(x) - 2) < eps` are safe; the price is
  that `Vector(1, 2) * 3` with a class of the program's raises TypeError.
- Tests cannot replace things inside the program (`mock.patch("builtins.input")`), subclass its classes, or share
  `random`'s state with it.
- Functions and constants of the prompt are the tests' own where the tests use them. Classes of the prompt and the setup
  live with the program, which may give them another `__eq__`; that decides between two of its objects.
- The tests are trusted: they run with the rights of the grader, bounded in time and memory.
- Inside its root the program sees the interpreter and the installed packages, and nothing else. Where the kernel
  allows no namespaces it can read what its user can, data sets included, and a program that forks faster than it
  is killed may take seconds to end. Without Landlock as well, evalplus' guard is all that protects the user's files.
- Hash randomization is off (PYTHONHASHSEED=0), so a program that depends on the order of a set is judged the same
  way each time.
- Where the kernel does not tell how long a process waited for a core, starvation shows as a timeout.
- Linux only; elsewhere resource limits are all there is.
"""
