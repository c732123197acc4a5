"""One file a command. Each is loaded only when it is called."""
