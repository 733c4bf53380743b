-- What operations need besides the engine's own tables: gates, retention by configuration, the reconciler, stuck work.

-- Released messages that nobody had claimed when the gate last looked.
alter table pawl.queues add column unclaimed_count int not null default 0 check (unclaimed_count >= 0);

-- What configuration says of a template, all its versions, the later ones too.
create table pawl.template_settings (
  namespace text not null,
  name text not null,
  retention interval check (retention >= interval '0'),
  stuck_after jsonb,
  primary key (namespace, name)
);

-- One row: where the reconciler's present pass stands. Every instance goes on from here.
create table pawl.reconciler (
  one_row boolean primary key default true check (one_row),
  after_task uuid not null default '00000000-0000-0000-0000-000000000000',
  pass bigint not null default 1
);
insert into pawl.reconciler default values;

-- Attempts that were seen without a message: repaired when a later pass finds them unchanged, and every result that was
-- on its way then (up to results_msg_id) has been applied.
create table pawl.reconciler_notes (
  task_id uuid not null,
  step text collate "C" not null,
  index int not null,
  attempt int not null,
  revision int not null,
  results_msg_id bigint not null,
  pass bigint not null,
  noted_at timestamptz not null,
  primary key (task_id, step, index)
);

-- What the reconciler put right. cause engine: a defect of Pawl; cause foreign: a worker popped a message and died, or
-- deleted one without a result.
create table pawl.repairs (
  repair_id bigint primary key generated always as identity,
  kind text not null,
  cause text not null check (cause in ('engine', 'foreign')),
  task_id uuid not null,
  step text,
  index int,
  attempt int,
  found jsonb,
  at timestamptz not null
);

-- Tasks that stayed in a state for longer than their template allows, kept for investigation.
create table pawl.stuck_reports (
  report_id bigint primary key generated always as identity,
  task_id uuid not null,
  state text not null,
  state_since timestamptz not null,
  threshold interval not null,
  snapshot jsonb not null,
  status text not null default 'open' check (status in ('open', 'investigating', 'resolved')),
  notes text,
  reported_at timestamptz not null,
  ended_at timestamptz,
  unique (task_id, state, state_since)
);
