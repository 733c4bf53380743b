-- does: stores a template from its canonical definition (workflow.Template.Definition) and makes its queues. The same
--   content again makes queues that are not whole, and nothing else. Returns {template_id, created, queues_created}. Nothing in it is accepted and ignored.
-- called by: pawl template apply, client.ApplyTemplate, adhoc_template.
-- locks: an advisory lock per template name.
-- raises: PW011 when other content stands under a used version, PW012 when the definition is not in topological order, PW013
--   for unknown fields and bad values.
create or replace function pawl.register_template(definition jsonb, adhoc boolean default false) returns jsonb
language plpgsql set jit = off as $$
declare
  d jsonb := definition;
  content text := encode(sha256(convert_to(definition::text, 'UTF8')), 'hex');
  known pawl.templates;
  id int;
  names text[]; -- of the steps, the first is no. 0
  edges int;
  made text[];
  problems text[];
begin
  perform pg_advisory_xact_lock(hashtext('pawl.register_template'), hashtext((d->>'namespace') || '/' || (d->>'name')));
  select * into known from pawl.templates t
  where t.namespace = d->>'namespace' and t.name = d->>'name' and t.version = d->>'version';
  if found and known.digest = content then
    return jsonb_build_object('template_id', known.template_id, 'created', false,
      'queues_created', to_jsonb(array(select q.queue from (select distinct s.queue from pawl.template_steps s
        where s.template_id = known.template_id) q where pawl.install_queue(q.queue) order by q.queue)));
  elsif found then
    raise exception 'template %/%@% is already applied with other content', d->>'namespace', d->>'name', d->>'version'
      using errcode = 'PW011', hint = 'A version never changes once applied; give the new content a new version.';
  end if;
  problems := case when jsonb_typeof(d) is distinct from 'object' then '{a definition is an object}' when adhoc is not true then pawl.template_problems(d) end;
  if problems is not null then
    raise exception 'template %: %', coalesce(left((d->>'namespace') || '/' || (d->>'name'), 127), 'without a name'),
      array_to_string(problems[:5], '; ') || case when problems[6] is not null then format('; and %s more', cardinality(problems) - 5) else '' end
      using errcode = 'PW013', hint = 'A definition is what workflow.Template.Definition writes: pawl template apply makes it from '
        'YAML and says the line of what is wrong.';
  end if;

  insert into pawl.templates (namespace, name, version, definition, digest, adhoc, retention, dedup_window,
    identity_strategy, identity_scope, on_failure, timeout, result_step, step_count, has_special_steps, stuck_after)
  select d->>'namespace', d->>'name', d->>'version', d, content, register_template.adhoc is true,
    (d->>'retention_ms')::bigint * interval '1 ms', (d#>>'{identity,dedup_window_ms}')::bigint * interval '1 ms',
    coalesce(d#>>'{identity,strategy}', 'default'), coalesce(d#>>'{identity,scope}', 'template'),
    coalesce(d->>'on_failure', 'finish'), (d->>'timeout_ms')::bigint * interval '1 ms', d->>'result',
    jsonb_array_length(d->'steps'), exists (select from jsonb_array_elements(d->'steps') s where s->>'key' is not null),
    coalesce(nullif(d->'stuck_after', 'null'), '{}')
  returning template_id into id;

  insert into pawl.template_steps (template_id, step, position, handler, queue, config, needs_count, has_dependents,
    max_attempts, backoff, base_ms, max_ms, jitter, max_deliveries, timeout, lease_ms, step_key, claim, on_crash)
  select id, s->>'name', (s->>'no')::smallint, s->>'handler', s->>'queue', nullif(s->'config', 'null'),
    jsonb_array_length(coalesce(nullif(s->'needs', 'null'), '[]')), false, coalesce((s#>>'{retry,max_attempts}')::int, 3),
    coalesce(s#>>'{retry,backoff}', 'exponential'), coalesce((s#>>'{retry,base_ms}')::bigint, 1000),
    coalesce((s#>>'{retry,max_ms}')::bigint, 300000), coalesce((s#>>'{retry,jitter}')::float, 0.2),
    coalesce((s->>'max_deliveries')::int, 10), (s->>'timeout_ms')::bigint * interval '1 ms',
    coalesce((s->>'lease_ms')::bigint, 30000), s->>'key', nullif(s->'claim', 'null'), coalesce(s->>'on_crash', 'hold')
  from jsonb_array_elements(d->'steps') s;

  names := array(select s.step from pawl.template_steps s where s.template_id = id order by s.position);
  insert into pawl.template_edges (template_id, parent, child, accepts_skipped, child_keyed)
  select id, names[n.no + 1], c->>'name', coalesce((n.need->>'accepts_skipped')::boolean, false), c->>'key' is not null
  from jsonb_array_elements(d->'steps') c
  cross join lateral jsonb_array_elements(coalesce(nullif(c->'needs', 'null'), '[]')) raw(need)
  cross join lateral (select raw.need, (case jsonb_typeof(raw.need) when 'number' then raw.need else raw.need->'no' end)::int as no) n
  where n.no between 0 and (c->>'no')::int - 1;
  get diagnostics edges = row_count;
  if edges <> (select sum(s.needs_count) from pawl.template_steps s where s.template_id = id) then
    raise exception 'template %/%: steps are not in topological order', d->>'namespace', d->>'name' using errcode = 'PW012',
      hint = 'A step comes after all steps that it needs.';
  end if;
  update pawl.template_steps s set has_dependents = true
  where s.template_id = id and exists (select from pawl.template_edges e where e.template_id = id and e.parent = s.step);
  update pawl.templates t set result_step = (select min(s.step) from pawl.template_steps s
      where s.template_id = id and not s.has_dependents having count(*) = 1)
  where t.template_id = id and t.result_step is null;

  select array_agg(q.queue order by q.queue) into made
  from (select distinct s.queue from pawl.template_steps s where s.template_id = id) q where pawl.install_queue(q.queue);
  return jsonb_build_object('template_id', id, 'created', true, 'queues_created', to_jsonb(coalesce(made, '{}')));
end $$;
