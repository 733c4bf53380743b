-- does: the fields of a template's canonical definition (workflow.Template.Definition), by the place they stand in. kind:
--   text, free (text), whole, fraction, object, list, yes (or no), any; rule: texts' pattern, the bounds of numbers and of
--   free texts' bytes. What is not required may be null.
-- called by: template_problems.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.template_fields()
returns table (place text, field text, required boolean, kind text, rule text, wanted text) language sql immutable as $$
  select f.place, f.field, left(f.kind, 1) = '!', ltrim(f.kind, '!'), coalesce(f.rule, case f.wanted
      when 'a name of a-z, 0-9 and _' then '^[a-z][a-z0-9_]{0,62}$'
      when 'milliseconds from 0' then '0 315360000000' when 'milliseconds from 1' then '1 315360000000' end), f.wanted
  from (values
    ('template', 'namespace', '!text', null, 'a name of a-z, 0-9 and _'),
    ('template', 'name', '!text', null, 'a name of a-z, 0-9 and _'),
    ('template', 'version', '!text', '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$', 'up to 63 letters, digits, dots, dashes and underscores'),
    ('template', 'description', 'free', '0 4096', 'text of up to 4096 bytes'),
    ('template', 'input_schema', 'object', null, 'a JSON Schema, an object'),
    ('template', 'timeout_ms', 'whole', null, 'milliseconds from 1'),
    ('template', 'on_failure', 'text', '^(finish|fail_fast|hold)$', 'finish, fail_fast or hold'),
    ('template', 'result', 'text', null, 'the name of a step'),
    ('template', 'identity', 'object', null, 'an object'),
    ('template', 'retention_ms', 'whole', null, 'milliseconds from 0'),
    ('template', 'stuck_after', 'object', null, 'an object of milliseconds by open state'),
    ('template', 'stuck_policy', 'text', '^report$', 'report'),
    ('template', 'steps', '!list', null, 'a list of steps'),
    ('identity', 'strategy', 'text', '^(default|caller_provided|strict|always_unique)$', 'default, caller_provided, strict or always_unique'),
    ('identity', 'scope', 'text', '^(template|namespace)$', 'template or namespace'),
    ('identity', 'dedup_window_ms', 'whole', null, 'milliseconds from 0'),
    ('step', 'no', '!whole', '0 9999', 'its place in the list, from 0'),
    ('step', 'name', '!text', null, 'a name of a-z, 0-9 and _'),
    ('step', 'handler', '!text', '^[A-Za-z][A-Za-z0-9_.-]{0,127}$', 'a letter and up to 127 letters, digits, dots, dashes and underscores'),
    ('step', 'queue', '!text', null, 'the name of a queue'),
    ('step', 'needs', 'list', null, 'a list of the numbers of steps'),
    ('step', 'config', 'object', null, 'an object'),
    ('step', 'retry', 'object', null, 'an object'),
    ('step', 'max_deliveries', 'whole', '1 1000', 'a whole number from 1 to 1000'),
    ('step', 'timeout_ms', 'whole', null, 'milliseconds from 1'),
    ('step', 'lease_ms', 'whole', '1000 43200000', 'milliseconds from 1000 to 43200000'),
    ('step', 'key', 'free', '1 1024', 'an expression'),
    ('step', 'claim', 'object', null, 'an object of claims by requester'),
    ('step', 'on_crash', 'text', '^(hold|retry)$', 'hold or retry'),
    ('need', 'no', '!whole', '0 9999', 'the number of a step'),
    ('need', 'accepts_skipped', 'yes', null, 'true or false'),
    ('retry', 'max_attempts', 'whole', '1 1000', 'a whole number from 1 to 1000'),
    ('retry', 'backoff', 'text', '^(none|fixed|linear|exponential)$', 'none, fixed, linear or exponential'),
    ('retry', 'base_ms', 'whole', null, 'milliseconds from 0'),
    ('retry', 'max_ms', 'whole', null, 'milliseconds from 0'),
    ('retry', 'jitter', 'fraction', '0 1', 'a number from 0 to 1'),
    ('claim', 'entity', 'any', null, 'the name of an entity'), -- this and the states are check_template_claims' matter
    ('claim', 'id', '!free', '1 1024', 'an expression'),
    ('claim', 'from', 'any', null, 'a state'),
    ('claim', 'into', 'any', null, 'a state'),
    ('claim', 'revert_to', 'any', null, 'a state'),
    ('claim', 'on_success', 'any', null, 'a state'),
    ('claim', 'on_busy', 'text', '^(fail|wait)$', 'fail or wait')
  ) f(place, field, kind, rule, wanted)
$$;
