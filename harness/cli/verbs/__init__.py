"""The verbs of the command line, one module each; a module's docstring is its help text."""
