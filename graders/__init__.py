"""Text in, verdict out: graders for mathematics, code and speed-only tasks.

Every grader is a plain class with one method, `grade(response, reference) -> Verdict` (`graders.verdict`),
configured by its constructor. Nothing here imports the harness, the schedules, torch or transformers, so the
package can be used on its own. Data sets, prompts, records and command lines do not live here.
"""
