package config

import "time"

// Off is the address of what is not wanted.
const Off = "off"

// Orchestrator has the settings of cmd/orchestrator.
type Orchestrator struct {
	DatabaseURL string `key:"database_url" doc:"Postgres that pawl migrate has seen, as postgres://user@host/database"`
	LogLevel    string `key:"log_level" default:"info" doc:"debug, info, warn or error"`

	Listen      string        `key:"orchestrator.listen" default:"127.0.0.1:8080" doc:"address of /healthz, /readyz, /metrics and /v1/worker/; off: none"`
	ListenerURL string        `key:"orchestrator.listener_url" doc:"the server itself, for notifications, when database_url leads through a transaction pooler; off: poll; empty: database_url"`
	WorkerToken string        `key:"orchestrator.worker_token" secret:"true" doc:"token that workers send to /v1/worker/; empty: that API is off"`
	Park        bool          `key:"orchestrator.park" doc:"start although entity claims of templates are not covered by a janitor, and let these templates' requests wait"`
	Connections int           `key:"orchestrator.connections" default:"10" unit:"connections" doc:"pool that works messages; the worker API has as many of its own"`
	Grace       time.Duration `key:"orchestrator.grace" default:"20s" doc:"how long a stop lets work end"`
	ConnectWait time.Duration `key:"orchestrator.connect_wait" default:"1m" zero:"true" doc:"how long a start tries while the database cannot be reached; 0: once"`

	Batch             int           `key:"orchestrator.batch" default:"200" unit:"messages" doc:"worked at once"`
	BatchBytes        int64         `key:"orchestrator.batch_bytes" default:"8388608" unit:"bytes" doc:"of bodies worked at once, as stored"`
	VisibilityTimeout time.Duration `key:"orchestrator.visibility_timeout" default:"30s" doc:"after which the engine's messages of a dead process are delivered again; a statement may take a third of it"`
	RequestLoops      int           `key:"orchestrator.request_loops" default:"1" unit:"consumers" doc:"of task requests, side by side"`
	ResultLoops       int           `key:"orchestrator.result_loops" default:"1" unit:"consumers" doc:"of step results, side by side"`
	MaxDeliveries     int           `key:"orchestrator.max_deliveries" default:"10" unit:"deliveries" doc:"of an engine's message that times out, loses the connection or panics alone, before it is a dead letter"`
	IdlePoll          time.Duration `key:"orchestrator.idle_poll" default:"1s" doc:"between looks when nothing wakes the consumers, and of the clock at the latest"`
	ProvenPoll        time.Duration `key:"orchestrator.proven_poll" default:"5s" doc:"between looks at the queues while notifications are proven to arrive"`
	HeartbeatEvery    time.Duration `key:"orchestrator.heartbeat_every" default:"5s" doc:"between heartbeats of the process"`
	ReconcileEvery    time.Duration `key:"orchestrator.reconcile_every" default:"10s" doc:"between passes of the reconciler"`
	ReconcileGrace    time.Duration `key:"orchestrator.reconcile_grace" default:"1m" doc:"how long work must have been idle before the reconciler looks at it"`
	SweepEvery        time.Duration `key:"retention.interval" default:"1h" doc:"between sweeps of retention"`
}

// Worker has the settings of cmd/worker.
type Worker struct {
	DatabaseURL string `key:"database_url" doc:"Postgres that pawl migrate has seen, as postgres://user@host/database"`
	LogLevel    string `key:"log_level" default:"info" doc:"debug, info, warn or error"`

	Listen      string        `key:"worker.listen" default:"off" doc:"address of /healthz, /readyz and /metrics; off: none"`
	Name        string        `key:"worker.name" doc:"tells the process apart in the audit; empty: host, process id and a random part"`
	Queues      []string      `key:"worker.queues" doc:"queues to work on, each as name or name:concurrency"`
	Handlers    []string      `key:"worker.handlers" doc:"built-in handlers to serve: noop, echo, sleep, fail, shop; empty: all"`
	Concurrency int           `key:"worker.concurrency" default:"32" unit:"handlers" doc:"at once, of each queue"`
	Grace       time.Duration `key:"worker.grace" default:"20s" doc:"how long a stop lets handlers end"`
	ConnectWait time.Duration `key:"worker.connect_wait" default:"1m" zero:"true" doc:"how long a start tries while the database cannot be reached; 0: once"`
	Poll        time.Duration `key:"worker.poll" default:"1s" doc:"between looks at an idle queue while notifications are not proven to arrive"`
	ProvenPoll  time.Duration `key:"worker.proven_poll" default:"5s" doc:"between looks at an idle queue while they are"`
	ListenerURL string        `key:"worker.listener_url" doc:"the server itself, for notifications, when database_url leads through a transaction pooler; off: poll; empty: database_url"`
}

// Engine has what the file says of all orchestrators of a database; `pawl config apply` puts it there.
type Engine struct {
	Staged   bool `key:"engine.staged" doc:"send every hop through its queue, instead of applying results where they are reported"`
	Direct   bool `key:"engine.direct" default:"true" doc:"let a report apply its own results when the task is free, and a client's plain request become a task at once"`
	Announce bool `key:"engine.announce" default:"true" doc:"notify of new messages; off for producers that use PREPARE TRANSACTION"`
	MaxSteps int  `key:"engine.max_steps_per_transaction" default:"2000" unit:"steps" doc:"enqueued in one transaction, at most; a look at the gates releases up to 1,000"`

	DeadLetterRetention time.Duration `key:"retention.dead_letters" default:"30d" zero:"true" doc:"of dead letters, open ones included"`
	AbsorbedRetention   time.Duration `key:"retention.absorbed" default:"7d" zero:"true" doc:"of the traces of duplicates and stale messages"`
	AuditRetention      time.Duration `key:"retention.audit" default:"90d" zero:"true" doc:"of the audit, which keeps the first 300 characters of each failure's message"`
	OperationRetention  time.Duration `key:"retention.operations" default:"90d" zero:"true" doc:"of operators' commands"`
}
