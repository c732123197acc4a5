"""What the command line does with `--server`: the same verbs and questions, over HTTP."""
