#!/bin/sh
# hook.sh PYTHON AGENT EVENT: answer the events that need nothing, and start Python for the others.
#
# Tool events are by far the most frequent ones. For most of them there is nothing to do: no wind-down is
# going on, the window is not nearly full, the command is plain and harmless. Seeing that takes a shell
# a third of the time that Python takes to start. Whatever is not certain here is left to Python.

python=$1 agent=$2 event=$3
[ "$agent" = claude ] && agent=claude-code # as installed by earlier versions

# A program that is gone must not hold the agent up.
[ -x "$python" ] || { cat >/dev/null; exit 0; }

case $event in
PreToolUse | BeforeTool | tool.execute.before) moment=before ;;
PostToolUse | PostToolUseFailure | PostToolBatch | AfterTool | tool.execute.after) moment=after ;;
*) exec "$python" -I -S "${0%/*}/entry.py" "$agent" "$event" ;;
esac

# The project as holdfast.hooks.fast.event finds it; a moved folder or an odd path is left to Python.
project=$HOLDFAST_PROJECT
if [ -z "$project" ]; then
    project=$PWD
    [ "$agent" = claude-code ] && [ -n "$CLAUDE_PROJECT_DIR" ] && project=$CLAUDE_PROJECT_DIR
    while [ ! -d "$project/.holdfast" ] && [ ! -e "$project/.git" ] && [ -n "$project" ]; do
        project=${project%/*}
    done
fi
notes=$project/.holdfast/state/hooks

# A wind-down of this session: every event counts, so read nothing twice.
if [ "$agent" = claude-code ] && [ -n "$CLAUDE_CODE_SESSION_ID" ] && [ -e "$notes/$CLAUDE_CODE_SESSION_ID/winding" ]; then
    exec "$python" -I -S "${0%/*}/entry.py" "$agent" "$event"
fi

hand_over() {
    { printf '%s' "$payload"; [ -z "$more" ] || cat; } | "$python" -I -S "${0%/*}/entry.py" "$agent" "$event"
    exit $?
}

# What is large is left to Python: a shell takes seconds over it. Elsewhere `head` may read more than it prints.
more=
if [ -e /proc/self ]; then
    payload=$(head -c 65536; echo .)
    payload=${payload%.}
    [ ${#payload} -lt 65536 ] || { more=1; hand_over; }
else
    payload=$(cat)
fi

# The value of a text member at the top of the payload, if it is plain.
member() {
    value=${payload#*\"$1\":}
    [ "$value" = "$payload" ] && return 1
    value=${value# }
    case $value in \"*) ;; *) return 1 ;; esac
    value=${value#\"}
    value=${value%%\"*}
    case $value in *\\*) return 1 ;; esac
}

# Of a turn that is recorded, the file that a tool is about to edit: what tells later whose a change is.
note_edit() {
    member file_path || hand_over
    path=$value call=
    member tool_use_id && call=$value
    member cwd || hand_over
    case $path$value$call in *[!A-Za-z0-9\ ._/@+-]*) hand_over ;; esac
    # Others may have written to it in this turn, before it is edited for the first time.
    [ -e "$path" ] && ! [ "$notes/$session/recording" -nt "$path" ] &&
        ! grep -qsF "\"file_path\": \"$path\"" "$notes/$session/named" && hand_over
    [ -e "$notes/$session/named" ] && [ ! -f "$notes/$session/named" ] && hand_over
    umask 077
    printf '{"tool": "%s", "cwd": "%s", "id": "%s", "given": {"file_path": "%s"}}\n' "$1" "$value" "$call" "$path" \
        >>"$notes/$session/named" || hand_over
}

member session_id || hand_over
session=$value
case $session in '' | *[!A-Za-z0-9._-]* | [!A-Za-z0-9]*) hand_over ;; esac
[ -e "$notes/$session/who" ] || hand_over
[ -L "$project/.holdfast/state" ] || [ -L "$notes" ] || [ -L "$notes/$session" ] && hand_over # whose it is, is asked there
[ -e "$notes/$session/winding" ] && hand_over
# What git has written since we last looked may have brought files into our folder.
if [ -f "$notes/$session/index" ] && [ -r "$notes/$session/index" ]; then
    IFS= read -r index <"$notes/$session/index"
    [ "$index" -nt "$notes/$session/index" ] && hand_over
fi
if [ "$agent" != claude-code ] || [ -z "$CLAUDE_PROJECT_DIR" ]; then
    # Only a payload from the folder we are in means the project we looked at.
    member cwd || hand_over
    [ -n "$HOLDFAST_PROJECT" ] || [ "$value" = "$PWD" ] || hand_over
fi

if [ $moment = before ]; then
    [ -e "$notes/$session/full" ] && hand_over
    [ -e "$notes/$session/turning" ] && hand_over
    case $payload in
    *'"command":'*'"command":'*) hand_over ;;
    *'"command":'*)
        member command || hand_over
        # Plain words only: anything a shell would expand, quote or redirect is looked at more closely.
        case $value in '' | *[!A-Za-z0-9\ ._/=:,@%+\&\|\;-]*) hand_over ;; esac
        # Words that a harmful command or a commit cannot do without.
        # made by scripts/hook_table.py
        case " $value " in
        *-delete* | *-exec* | *-ok* | */dev* | */etc* | */proc* | *[!A-Za-z0-9]aria2c[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]ash[!A-Za-z0-9]* | *[!A-Za-z0-9]badblocks[!A-Za-z0-9]* | *[!A-Za-z0-9]bash[!A-Za-z0-9]* \
            | *[!A-Za-z0-9]blkdiscard[!A-Za-z0-9]* | *[!A-Za-z0-9]checkout[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]chgrp[!A-Za-z0-9]* | *[!A-Za-z0-9]chmod[!A-Za-z0-9]* | *[!A-Za-z0-9]chown[!A-Za-z0-9]* \
            | *[!A-Za-z0-9]clean[!A-Za-z0-9]* | *[!A-Za-z0-9]commit[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]crontab[!A-Za-z0-9]* | *[!A-Za-z0-9]curl[!A-Za-z0-9]* | *[!A-Za-z0-9]dash[!A-Za-z0-9]* \
            | *[!A-Za-z0-9]eval[!A-Za-z0-9]* | *[!A-Za-z0-9]fdisk[!A-Za-z0-9]* | *[!A-Za-z0-9]fetch[!A-Za-z0-9]* \
            | *[!A-Za-z0-9]fish[!A-Za-z0-9]* | *flatpak-spawn* | *[!A-Za-z0-9]halt[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]hdparm[!A-Za-z0-9]* | *[!A-Za-z0-9]holdfast[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]init[!A-Za-z0-9]* | *[!A-Za-z0-9]kill[!A-Za-z0-9]* | *[!A-Za-z0-9]ksh[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]mke2fs[!A-Za-z0-9]* | *[!A-Za-z0-9]mkfs[!A-Za-z0-9]* | *[!A-Za-z0-9]mkswap[!A-Za-z0-9]* \
            | *[!A-Za-z0-9]mv[!A-Za-z0-9]* | *[!A-Za-z0-9]newfs[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]parallel[!A-Za-z0-9]* | *[!A-Za-z0-9]parted[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]poweroff[!A-Za-z0-9]* | *[!A-Za-z0-9]push[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]reboot[!A-Za-z0-9]* | *[!A-Za-z0-9]reset[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]restore[!A-Za-z0-9]* | *[!A-Za-z0-9]rimraf[!A-Za-z0-9]* | *[!A-Za-z0-9]rm[!A-Za-z0-9]* \
            | *[!A-Za-z0-9]rsync[!A-Za-z0-9]* | *[!A-Za-z0-9]script[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]sfdisk[!A-Za-z0-9]* | *[!A-Za-z0-9]sgdisk[!A-Za-z0-9]* | *[!A-Za-z0-9]sh[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]shred[!A-Za-z0-9]* | *[!A-Za-z0-9]shutdown[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]source[!A-Za-z0-9]* | *[!A-Za-z0-9]srm[!A-Za-z0-9]* | *[!A-Za-z0-9]ssh[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]su[!A-Za-z0-9]* | *[!A-Za-z0-9]switch[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]systemctl[!A-Za-z0-9]* | *[!A-Za-z0-9]telinit[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]wget[!A-Za-z0-9]* | *[!A-Za-z0-9]wipefs[!A-Za-z0-9]* | *[!A-Za-z0-9]xargs[!A-Za-z0-9]* \
            | *[!A-Za-z0-9]zsh[!A-Za-z0-9]*) hand_over ;;
        esac
        # end
        # Words that make files: whose they are is noted.
        [ -e "$notes/$session/recording" ] && case " $value " in
        *[!A-Za-z0-9]touch[!A-Za-z0-9]* | *[!A-Za-z0-9]cp[!A-Za-z0-9]* | *[!A-Za-z0-9]ln[!A-Za-z0-9]* | \
            *mkdir* | *rmdir* | *truncate* | *restore* | *tee* | *[!A-Za-z0-9]install[!A-Za-z0-9]* | \
            *[!A-Za-z0-9]sed\ -*i* | *[!A-Za-z0-9]perl\ -*i*) hand_over ;;
        esac
        exit 0
        ;;
    esac
    member tool_name || hand_over
    case $value in
    Edit | MultiEdit | Write | NotebookEdit | write_file | replace | edit | write | apply_patch)
        [ -e "$notes/$session/edit-gate" ] || hand_over
        [ -e "$notes/$session/recording" ] && note_edit "$value"
        ;;
    *[Pp]lan*) hand_over ;;
    esac
    exit 0
fi

# After a tool: a commit is noted, and the window is looked at.
case $payload in *git*commit*) hand_over ;; esac
[ -e "$notes/$session/full" ] && hand_over
[ -e "$notes/$session/compacted" ] && hand_over
[ -e "$notes/$session/notice-due" ] && hand_over # a level that the user has not been told of
[ "$agent" = claude-code ] || exit 0 # the others tell their usage in an event of its own

[ -f "$notes/$session/gauge" ] && [ -r "$notes/$session/gauge" ] || hand_over # of a pipe it would wait
limit='' certain=''
read -r limit certain <"$notes/$session/gauge" || hand_over
call=
case $payload in *'"agent_id":'*) ;; *) member tool_use_id && call=$value ;; esac
member transcript_path || hand_over
# Certainly below the limit if every report near the end is; the first line may be cut. The transcript is written a
# little late: where the next report may matter, this tool's call must be among its lines.
tail -c 32768 "$value" 2>/dev/null | awk -v limit="$limit" -v certain="$certain" -v call="$call" '
    function count(name) {
        if (!match($0, "\"" name "\": ?[0-9]+")) return 0
        text = substr($0, RSTART, RLENGTH)
        sub(/.*: ?/, "", text)
        return text + 0
    }
    call != "" && index($0, call) { written = 1 }
    NR > 1 && /"usage"/ && /"type": ?"assistant"/ {
        seen = 1
        total = count("input_tokens") + count("output_tokens")
        total += count("cache_read_input_tokens") + count("cache_creation_input_tokens")
        if (total >= limit) full = 1
    }
    END { exit(seen && !full && (written || call == "" || total < certain) ? 0 : 1) }
' && exit 0
hand_over
