#!/bin/sh
# hook.sh PYTHON AGENT EVENT
[ -x "$1" ] || { cat >/dev/null; exit 0; }
exec "$1" -I -S "${0%/*}/entry.py" "$2" "$3"
