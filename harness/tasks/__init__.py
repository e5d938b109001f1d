"""Tasks: prompts and data sets. Graders live in `graders`, the configs in `conf/task/`."""
