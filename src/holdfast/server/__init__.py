"""REST, WebSocket and the dashboard's files: what the program does, for browsers and other programs."""
