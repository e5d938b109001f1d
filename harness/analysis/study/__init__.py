"""Which records are shown and compared, and on which prompts."""
