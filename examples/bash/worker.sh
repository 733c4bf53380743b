#!/usr/bin/env bash
# A worker in bash with psql and PGMQ's own functions: level 1 of docs/workers.md.
#
#   PAWL_DATABASE_URL=postgres://… examples/bash/worker.sh QUEUE HANDLERS
#
# HANDLERS is a file of functions called handle_NAME. They find INPUT, DEPENDENCIES and CONFIG (JSON), HANDLER, STEP, TOKEN,
# CORRELATION_ID (JSON), ATTEMPT and DELIVERY in variables, `field NAME` reads a field of the input, and they print their
# result as JSON. `fail TYPE MESSAGE`, `permanent TYPE MESSAGE`, `reject TYPE MESSAGE` and `retry_after SECONDS TYPE MESSAGE`
# end them otherwise; so does any command that fails, as set -e sees it: not one within the argument of another command, so
# `name=$(field name)` comes first, and then what uses it.
#
# One step at a time. A handler may run more than once: TOKEN is the same every time. It has to be done within VISIBLE_AFTER
# seconds, or another worker gets the step too.
set -uo pipefail

queue=$1
# shellcheck source=/dev/null
source "$2"
visible_after=${VISIBLE_AFTER:-30}
worker=bash-$HOSTNAME-$$

# sql runs statements from standard input: an argument of a program holds 128 kB at most, a result may be larger. Errors
# are SQLSTATEs alone, since texts may hold what was sent.
sql() { psql "$PAWL_DATABASE_URL" -XqAt -F $'\x1f' -v ON_ERROR_STOP=1 -v VERBOSITY=sqlstate; }
quote() { printf "'%s'" "${1//\'/\'\'}"; }
string() { ask "select to_jsonb($(quote "$1")::text)"; }
field() { ask "select $(quote "$INPUT")::jsonb->>$(quote "$1")"; }

# ask runs a statement without effects until the database has answered, if only that it is wrong (psql's code 3): an outage
# is not the handler's failure.
ask() {
  while :; do
    sql <<<"$1" 2>/dev/null && return
    [ $? = 3 ] && return 3
    sleep 0.3
  done
}

fail() { printf '%s\x1f%s\x1f' "$1" "$2"; exit 10; }
permanent() { printf '%s\x1f%s\x1f' "$1" "$2"; exit 11; }
reject() { printf '%s\x1f%s\x1f' "$1" "$2"; exit 12; }
retry_after() { printf '%s\x1f%s\x1f%s' "$2" "$3" "$1"; exit 10; }

# report sends a result and takes the message away, in one transaction. The message only if it is still ours: read_ct tells.
report() { # status, then the rest of the result as JSON
  sql <<SQL
begin;
select pgmq.send('orchestration_step_results', $(quote "$message")::jsonb || jsonb_build_object('v', 1, 'status', '$1', 'worker', $(quote "$worker"))
  || $(quote "$2")::jsonb);
select pgmq.delete($(quote "$queue"), msg_id) from pgmq.q_$queue where msg_id = $msg_id and read_ct = $DELIVERY;
commit;
SQL
}

# deliver repeats report until the database has taken it, or we are to stop: then the step comes back. What it refuses as
# data, or for its size or depth, becomes a failure in its place.
deliver() {
  local problem tries=0
  until problem=$(report "$1" "$2" 2>&1 >/dev/null); do
    case $1$problem in
      complete*"ERROR:  22"* | complete*"ERROR:  54"*)
        set -- failed '{"error": {"type": "invalid_result", "message": "the database cannot store the result", "retryable": false}}'
        continue ;;
    esac
    echo "$worker: reporting: $problem" >&2
    # The signal that stops us may have ended a report.
    if [ "$stopping" ] && [ $((tries += 1)) -ge 5 ]; then return; fi
    sleep 0.5
  done
}

work() {
  local result code error type text seconds
  if ! declare -F "handle_$HANDLER" >/dev/null; then
    deliver failed '{"error": {"type": "unknown_handler", "message": "this worker has no such handler"}}'
    return
  fi
  result=$(set -e; "handle_$HANDLER")
  code=$?
  if [ $code = 0 ]; then
    deliver complete "{\"result\": ${result:-null}}"
    return
  elif [ "$stopping" ] && [ $code -gt 128 ]; then
    return # it was ended by the signal that ends us: the step comes back
  elif [ $code -ge 10 ] && [ $code -le 12 ]; then
    IFS=$'\x1f' read -r -d '' type text seconds <<<"$result"
    seconds=${seconds%$'\n'}
  else
    type=error text="the handler ended with code $code" seconds=
  fi
  type=$(string "$type") || type='"error"' # it is no text
  text=$(string "$text") || text="\"the handler ended with code $code and no text\""
  error="\"type\": $type, \"message\": $text${seconds:+, \"retry_after\": $seconds}"
  case $code in
    11) deliver failed "{\"error\": {$error, \"retryable\": false}}" ;;
    12) deliver rejected "{\"error\": {$error, \"retryable\": false}}" ;;
    *) deliver failed "{\"error\": {$error, \"retryable\": true}}" ;;
  esac
}

# next reads one message; it waits for up to two seconds. What is too large for a message is fetched by reference.
next() {
  sql <<SQL
select m.msg_id, m.read_ct, m.message->>'handler', m.message->>'step', m.message->>'token', coalesce(m.message->'correlation_id', 'null'),
  m.message->>'attempt', coalesce(m.message->'config', 'null'),
  jsonb_build_object('task_id', m.message->'task_id', 'step', m.message->'step', 'index', coalesce(m.message->'index', '0'), 'attempt', m.message->'attempt'),
  coalesce(r.body->'dependencies', '{}'), coalesce(r.body->'input', 'null')
from pgmq.read_with_poll($(quote "$queue"), $visible_after, 1, 2, 50) m
cross join lateral (select case when m.message->>'by_reference' = 'true'
  then pawl.step_input((m.message->>'task_id')::uuid, m.message->>'step', coalesce((m.message->>'index')::int, 0)) else m.message end) r(body)
SQL
}

stopping=
trap 'stopping=1' TERM INT
while [ ! "$stopping" ]; do
  if ! row=$(next 2>/dev/null); then
    [ "$stopping" ] || sleep 0.5 # no database: look again
    continue
  fi
  [ "$row" ] || continue
  IFS=$'\x1f' read -r msg_id DELIVERY HANDLER STEP TOKEN CORRELATION_ID ATTEMPT CONFIG message DEPENDENCIES INPUT <<<"$row"
  work
done
