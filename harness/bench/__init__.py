"""Benchmarks of the harness itself, on the embedded model: ratios within one run, medians of interleaved repeats."""
