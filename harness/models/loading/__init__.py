"""From a config to a checkpoint that was found, checked and read."""
