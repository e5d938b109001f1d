"""The check on a speculative width that all schedules with drafts share."""


def checked_width(width: int) -> int:
    """`width` itself.

    Raises:
      ValueError: `width` is not an integer of at least 1.
    """
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise ValueError(f"width: got {width!r}, need an integer of at least 1 (block size is width + 1)")
    return width
