#!/bin/sh
# Replaces the running service by the version that is installed now. No request fails: the new master
# process loads the code, accepts requests on the same socket, and only then the old one ends, once
# its requests are finished. If the new version does not start, the old one goes on.
#
#   deploy/reload.sh /run/roombook/gunicorn.pid
set -eu
pidfile=$1
# How long the new version may take to load, and the old one to finish its requests.
load_seconds=${RELOAD_LOAD_SECONDS:-60}
end_seconds=40

# wait_until SECONDS COMMAND...
wait_until() {
    tenths=$(($1 * 10))
    shift
    until "$@"; do
        tenths=$((tenths - 1))
        [ "$tenths" -gt 0 ] || return 1
        sleep 0.1
    done
}

is_loaded() { [ -s "$pidfile.2" ]; }
# A new master that was seen and is gone has failed: do not wait any longer.
has_loaded_or_ended() {
    is_loaded && return
    found=$(find_new_master)
    [ -z "$found" ] && [ -n "$begun" ] && return
    begun=$begun$found
    return 1
}
has_taken_over() { [ "$(cat "$pidfile" 2>/dev/null)" = "$new" ]; }

# The new master is the child of the old one that was started for it; workers were not.
find_new_master() {
    # One grep: a process for each file would take as long as the new version may take to load.
    grep -ls "^PPid:[[:space:]]*$old\$" /proc/[0-9]*/status | while read -r status; do
        if tr '\0' '\n' 2>/dev/null <"${status%status}environ" | grep -qx "GUNICORN_PID=$old"; then
            echo "$status" | tr -dc 0-9
        fi
    done
}

old=$(cat "$pidfile")
rm -f "$pidfile.2"
# gunicorn starts a new master, which writes its id as soon as it has loaded the application.
kill -USR2 "$old"
begun=
if ! wait_until "$load_seconds" has_loaded_or_ended || ! is_loaded; then
    # It may only be slow. Later, both versions would serve.
    new=$(find_new_master)
    [ -z "$new" ] || kill -KILL "$new"
    echo "The new version did not start; the old one still runs. See its log." >&2
    exit 1
fi
new=$(cat "$pidfile.2")
kill -TERM "$old"
# The new master renames its file when the old one has ended.
if ! wait_until "$end_seconds" has_taken_over; then
    echo "The old version (process $old) has not ended after $end_seconds s." >&2
    exit 1
fi
