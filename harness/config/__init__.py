"""From words on a command line to configs and cells: the only room that knows Hydra's files."""
