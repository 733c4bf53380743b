-- Tables and types of the engine. A task's rows are led by its id in every key; there are no foreign keys and no
-- index that names a state, so that the updates of the hot path stay HOT (docs/architecture.md gives the figures).

create schema pawl;
create schema pawl_queues;

create type pawl.task_state as enum (
  'pending', 'initializing', 'enqueuing_steps', 'steps_in_process', 'waiting_for_retry', 'waiting_for_dependencies',
  'evaluating_results', 'blocked_by_failures', 'complete', 'error', 'cancelled', 'timed_out', 'resolved_manually');

create type pawl.step_state as enum (
  'pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting',
  'complete', 'skipped', 'error', 'cancelled', 'resolved_manually');

-- One row: how the engine runs. staged sends every hop through its queue, direct lets a reporting transaction apply its
-- own results when the task is free; announce off stops NOTIFY for producers that use PREPARE TRANSACTION.
create table pawl.engine_settings (
  one_row boolean primary key default true check (one_row),
  staged boolean not null default false,
  direct boolean not null default true,
  announce boolean not null default true,
  max_steps_per_transaction int not null default 2000 check (max_steps_per_transaction between 1 and 10000),
  dead_letter_retention interval not null default '30 days',
  absorbed_retention interval not null default '7 days',
  audit_retention interval not null default '90 days',
  operation_retention interval not null default '90 days'
);
insert into pawl.engine_settings default values;

-- A queue the engine knows. A queue with a limit or a pause is gated: its steps wait in held_steps.
create table pawl.queues (
  queue text primary key check (queue ~ '^[a-z][a-z0-9_]{0,39}$'),
  engine boolean not null default false,
  paused boolean not null default false,
  rate_limit int check (rate_limit > 0),
  rate_period interval check (rate_period > interval '0'),
  burst int check (burst > 0),
  max_concurrency int check (max_concurrency > 0),
  retention interval check (retention >= interval '0'),
  gated boolean not null generated always as (paused or rate_limit is not null or max_concurrency is not null) stored,
  tokens double precision,
  tokens_at timestamptz,
  created_at timestamptz not null default now(),
  check ((rate_limit is null) = (rate_period is null))
);

create table pawl.templates (
  template_id int primary key generated always as identity,
  namespace text not null,
  name text not null,
  version text not null,
  definition jsonb not null,
  digest text not null,
  adhoc boolean not null default false,
  parked_reason text,
  retention interval,
  dedup_window interval,
  identity_strategy text not null default 'default'
    check (identity_strategy in ('default', 'caller_provided', 'strict', 'always_unique')),
  identity_scope text not null default 'template' check (identity_scope in ('template', 'namespace')),
  on_failure text not null default 'finish' check (on_failure in ('finish', 'fail_fast', 'hold')),
  timeout interval,
  result_step text,
  step_count int not null,
  has_special_steps boolean not null default false,
  stuck_after jsonb not null default '{}',
  applied_at timestamptz not null default now(),
  unique (namespace, name, version)
);

create table pawl.template_steps (
  template_id int not null,
  step text collate "C" not null,
  position smallint not null,
  handler text not null,
  queue text not null,
  config jsonb,
  needs_count smallint not null,
  has_dependents boolean not null,
  max_attempts int not null,
  backoff text not null check (backoff in ('none', 'fixed', 'linear', 'exponential')),
  base_ms bigint not null,
  max_ms bigint not null,
  jitter double precision not null,
  max_deliveries int not null,
  timeout interval,
  lease_ms bigint not null,
  step_key text,
  claim jsonb,
  on_crash text not null default 'hold' check (on_crash in ('hold', 'retry')),
  primary key (template_id, step)
);

create table pawl.template_edges (
  template_id int not null,
  parent text collate "C" not null,
  child text collate "C" not null,
  accepts_skipped boolean not null default false,
  child_keyed boolean not null default false,
  primary key (template_id, parent, child)
);
create index template_edges_child on pawl.template_edges (template_id, child, parent);

create table pawl.tasks (
  task_id uuid primary key,
  template_id int not null,
  namespace text not null,
  template text not null,
  version text not null,
  key text,
  scope text,
  epoch int,
  correlation_id text,
  requester text,
  reply_to text,
  tags jsonb,
  input jsonb,
  trace jsonb,
  requested_at timestamptz not null,
  started_at timestamptz,
  state pawl.task_state not null,
  revision int not null default 1,
  open_count int not null check (open_count >= 0),
  active_count int not null default 0 check (active_count >= 0),
  held_count int not null default 0 check (held_count >= 0),
  retrying_count int not null default 0 check (retrying_count >= 0),
  waiting_count int not null default 0 check (waiting_count >= 0),
  failed_count int not null default 0 check (failed_count >= 0),
  state_since timestamptz not null,
  due_at timestamptz,
  finalized_at timestamptz,
  result jsonb,
  error jsonb,
  constraint final_has_time check ((finalized_at is not null) =
    (state in ('complete', 'error', 'cancelled', 'timed_out', 'resolved_manually'))),
  constraint complete_is_clean check (state <> 'complete' or (open_count = 0 and failed_count = 0))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05,
        autovacuum_vacuum_insert_scale_factor = 0.5);
create index tasks_due on pawl.tasks (due_at) where due_at is not null;

create table pawl.steps (
  task_id uuid not null,
  step text collate "C" not null,
  index int not null default 0,
  template_id int not null,
  handler text not null,
  queue text not null,
  state pawl.step_state not null,
  revision int not null default 0,
  attempt int not null default 0 check (attempt >= 0),
  deliveries int not null default 0 check (deliveries >= 0),
  failures int not null default 0 check (failures >= 0),
  round smallint not null default 0,
  needs_open smallint not null check (needs_open >= 0),
  worker text,
  state_since timestamptz not null,
  due_at timestamptz,
  result jsonb,
  error jsonb,
  primary key (task_id, step, index),
  constraint in_progress_has_worker check ((state = 'in_progress') = (worker is not null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05,
        autovacuum_vacuum_insert_scale_factor = 0.5);
create index steps_due on pawl.steps (due_at) where due_at is not null;

-- Ready work that a gate holds back; with released_at it is the concurrency slot until the attempt ends.
create table pawl.held_steps (
  task_id uuid not null,
  step text collate "C" not null,
  index int not null default 0,
  queue text not null,
  attempt int not null,
  held_at timestamptz not null,
  released_at timestamptz,
  primary key (task_id, step, index)
);
create index held_steps_waiting on pawl.held_steps (queue, (attempt > 1), held_at) where released_at is null;
create index held_steps_released on pawl.held_steps (queue) where released_at is not null;

create table pawl.task_identities (
  scope text not null,
  key text not null check (octet_length(key) between 1 and 255),
  task_id uuid not null,
  status text not null check (status in ('pending', 'running', 'completed', 'failed', 'cancelled', 'timed_out')),
  fingerprint bytea not null,
  epoch int not null default 1,
  expires_at timestamptz,
  primary key (scope, key)
) with (fillfactor = 80);

-- Who holds a step's key, and who waits for its result.
create table pawl.step_identities (
  scope text not null,
  key text not null check (octet_length(key) between 1 and 255),
  task_id uuid not null,
  step text collate "C" not null,
  index int not null default 0,
  status text not null check (status in ('running', 'completed')),
  expires_at timestamptz,
  primary key (scope, key)
);
create table pawl.step_key_waiters (
  scope text not null,
  key text not null,
  task_id uuid not null,
  step text collate "C" not null,
  index int not null default 0,
  primary key (scope, key, task_id, step, index)
);

-- The user's own tables that entity claims may touch, registered by an operator.
create table pawl.entities (
  entity text primary key,
  table_name text not null,
  key_column text not null,
  status_column text not null,
  version_column text not null,
  states text[] not null,
  module text not null,
  claim_limit interval not null default '5 minutes',
  registered_at timestamptz not null default now()
);
create table pawl.entity_claims (
  entity text not null,
  entity_id text not null,
  task_id uuid not null,
  step text collate "C" not null,
  index int not null default 0,
  attempt int not null,
  version bigint not null,
  revert_to text not null,
  on_success text not null,
  claimed_at timestamptz not null,
  lease_until timestamptz not null,
  revoked_at timestamptz,
  primary key (entity, entity_id)
);
create index entity_claims_step on pawl.entity_claims (task_id, step, index);
-- A module's janitor that runs somewhere: which module, and when it was last alive.
create table pawl.janitors (
  module text primary key,
  processor_id uuid,
  seen_at timestamptz not null
);

-- Every transition, written by the guards of tasks and steps in the transaction that makes it. step null: the task.
create table pawl.audit (
  task_id uuid not null,
  step text,
  index int,
  from_state text,
  to_state text not null,
  event text not null,
  revision int not null,
  attempt int,
  delivery int,
  processor text,
  actor text,
  reason text,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0.5);
create index audit_at on pawl.audit using brin (at) with (pages_per_range = 32, autosummarize = on);

create table pawl.absorbed (
  absorbed_id bigint primary key generated always as identity,
  queue text not null,
  msg_id bigint,
  task_id uuid,
  step text,
  index int,
  attempt int,
  reason text not null,
  message jsonb,
  absorbed_at timestamptz not null default now()
);

create table pawl.dead_letters (
  dead_letter_id bigint primary key generated always as identity,
  queue text not null,
  msg_id bigint,
  read_count int,
  message jsonb,
  headers jsonb,
  reason text not null,
  task_id uuid,
  step text,
  status text not null default 'open' check (status in ('open', 'redriven', 'dropped')),
  dead_at timestamptz not null default now(),
  ended_at timestamptz,
  ended_by text
);

create table pawl.processors (
  processor_id uuid primary key,
  kind text not null,
  host text not null,
  pid int not null,
  version text not null,
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now(),
  stopped_at timestamptz
);

-- What an operator did: one row per command.
create table pawl.operations (
  operation_id bigint primary key generated always as identity,
  command text not null,
  task_id uuid,
  step text,
  queue text,
  actor text not null,
  reason text not null,
  outcome jsonb,
  at timestamptz not null default now()
);

-- The end of one attempt, as it travels between the functions of the engine.
create type pawl.step_result as (
  task_id uuid, step text, index int, attempt int, status text, result jsonb, error jsonb, worker text, msg_id bigint);

-- A request to create a task, decided and completed.
create type pawl.task_request as (
  msg_id bigint, read_count int, task_id uuid, template_id int, message jsonb, headers jsonb,
  scope text, key text, epoch int);

-- A step message as a claim reads it.
create type pawl.delivery as (msg_id bigint, read_ct int, message jsonb, headers jsonb);

-- One step of one task.
create type pawl.step_ref as (task_id uuid, step text, index int);

create table pawl.legal_transitions (
  entity text not null check (entity in ('task', 'step')),
  from_state text not null,
  to_state text not null,
  via_state text,
  hops smallint not null default 1 check (hops in (1, 2) and (hops = 2) = (via_state is not null)),
  event text not null,
  operator_only boolean not null default false,
  primary key (entity, from_state, to_state)
);

-- When waiters were last told that tasks have ended, in milliseconds (announce_finished).
create sequence pawl_queues.announced_finished minvalue 0;
