import json

import pytest

from graders.verdict import Verdict


def test_record_holds_fields_and_details_side_by_side():
    verdict = Verdict(True, "boxed", "18", {"strict": False})

    assert verdict.record() == {"correct": True, "reason": "boxed", "answer": "18", "strict": False}


def test_record_can_be_written_as_utf_8_whatever_the_answer():
    record = Verdict(None, "infra\n\udfff", "\ud800", {"flexible_answer": ["\ud800", {"a": ("\udc00",)}]}).record()

    assert json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8")) == {
        "correct": None,
        "reason": "infra\n\\udfff",
        "answer": "\\ud800",
        "flexible_answer": ["\\ud800", {"a": ["\\udc00"]}],
    }


def test_kind_is_the_first_line_of_the_reason():
    assert Verdict(False, "failed\ntest 1 of 3\nAssertionError").kind == "failed"


def test_a_detail_cannot_hide_a_field():
    with pytest.raises(ValueError, match="correct"):
        Verdict(False, "boxed", "18", {"correct": True})
