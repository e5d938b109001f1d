"""One record with every awkward character in its texts."""

from harness.records.record import Record

RECORD = Record(
    model="tiny",
    task="toy",
    schedule="packed",
    width=15,
    order="ltr",
    adapter=None,
    temperature=0.0,
    prompt_id="toy/0",
    repetition=0,
    seed=7,
    prompt_tokens=4,
    token_ids=[5, 6],
    text='quotes " and \ud800 and \u2028',
    tokens=2,
    nfe=2,
    wall_s=0.5,
    model_s=0.25,
    rows=40,
    accepted=[1, 1],
    stop_reason="eos",
    verdict={"correct": True, "reason": 'it says ", "checksum": "0"'},
    started_at="2026-01-01T00:00:00.000+00:00",
)
