# A worker in Ruby with the driver alone (Debian: ruby ruby-pg) and PGMQ's own functions: level 1 of docs/workers.md.
#
#   PAWL_DATABASE_URL=postgres://… ruby worker.rb QUEUE
#
# One step at a time. A handler may run more than once: token is the same every time. It has to be done within
# VISIBLE_AFTER seconds, or another worker gets the step too.

require "json"
require "pg"
require "socket"

VISIBLE_AFTER = 30
WORKER = "ruby-#{Socket.gethostname}-#{Process.pid}"

# Ends a handler: tried again, not before retry_after seconds, or not at all.
class Failure < StandardError
  attr_reader :type, :retryable, :retry_after

  def initialize(message, type: "error", retryable: true, retry_after: nil)
    super(message)
    @type, @retryable, @retry_after = type, retryable, retry_after
  end
end

HANDLERS = {
  "greet" => lambda do |input, _step|
    raise Failure.new("whom to greet is not said", type: "no_name", retryable: false) if input["name"].to_s.empty?

    "Hello, #{input["name"]}!"
  end,
}

READ = <<~SQL
  select m.msg_id, m.read_ct, m.message, case when m.message->>'by_reference' = 'true' then
    pawl.step_input((m.message->>'task_id')::uuid, m.message->>'step', coalesce((m.message->>'index')::int, 0)) end as large
  from pgmq.read_with_poll($1::text, $2::int, 1, 2, 50) m
SQL

# Only the message that is still ours goes away: read_ct tells. Result and end of the message are one statement.
REPORT = <<~SQL
  with sent as (select pgmq.send('orchestration_step_results', $1::jsonb))
  select pgmq.delete($2::text, q.msg_id) from sent, pgmq.q_%s q where q.msg_id = $3 and q.read_ct = $4
SQL

# A text that JSON and the database can hold.
def text(of)
  of.to_s.encode("UTF-8", invalid: :replace, undef: :replace).scrub.delete("\0")
end

def outcome(step)
  handler = HANDLERS[step["handler"]] or raise Failure.new("this worker has no handler #{step["handler"]}", type: "unknown_handler")
  { status: "complete", result: handler.call(step["input"], step) }
rescue Failure => e
  { status: "failed", error: { type: e.type, message: text(e.message), retryable: e.retryable, retry_after: e.retry_after }.compact }
rescue StandardError, ScriptError, SystemStackError => e
  { status: "failed", error: { type: e.class.name, message: text(e.message), retryable: true } }
end

def report(db, queue, row, step, result)
  body = step.slice("task_id", "step", "index", "attempt").merge(v: 1, worker: WORKER, **result)
  db.exec_params(format(REPORT, queue), [JSON.generate(body), queue, row["msg_id"], row["read_ct"]])
rescue JSON::JSONError, EncodingError, PG::DataException, PG::ProgramLimitExceeded # NaN and bytes are no JSON
  error = { type: "invalid_result", message: "the database cannot store the result", retryable: false }
  report(db, queue, row, step, { status: "failed", error: error })
end

def work(db, queue)
  row = db.exec_params(READ, [queue, VISIBLE_AFTER]).first or return
  step = JSON.parse(row["message"])
  step.merge!(JSON.parse(row["large"])) if row["large"]
  report(db, queue, row, step, outcome(step))
end

def run(queue)
  abort "#{queue.inspect} is not the name of a queue" unless queue.match?(/\A[a-z][a-z0-9_]{0,39}\z/)
  stopping = false
  %w[TERM INT].each { |name| trap(name) { stopping = true } }
  db = nil
  until stopping
    begin
      db ||= PG.connect(ENV.fetch("PAWL_DATABASE_URL"))
      work(db, queue)
    rescue PG::UndefinedTable
      sleep 0.5 # nobody has named the queue yet
    rescue PG::Error => e # the message comes back when it is visible again
      warn "#{WORKER}: #{e.class}, connecting again"
      db&.close rescue nil
      db = nil
      sleep 0.5
    end
  end
end

run(ARGV.fetch(0)) if $PROGRAM_NAME == __FILE__
