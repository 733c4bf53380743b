-- does: tells whether a template's step may come to need another: the path that a new edge from_step → to_step would close,
--   from from_step over to_step back to it; null when it closes none. No limit of depth.
-- called by: whoever adds steps at run time; register_template refuses cycles by its topological order.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.would_create_cycle(template_id int, from_step text, to_step text) returns text[]
language sql stable as $$
  with recursive reach(parent, child) as (
    select e.parent, e.child from pawl.template_edges e where e.template_id = $1 and e.parent = $3
    union
    select e.parent, e.child from reach r join pawl.template_edges e on e.template_id = $1 and e.parent = r.child),
  back(step, path) as (
    select $2 collate "C", array[$2 collate "C"]
    union all
    select p.parent, p.parent || b.path from back b
    cross join lateral (select min(r.parent) as parent from reach r where r.child = b.step) p
    where b.step <> $3 and p.parent is not null)
  select case when $2 = $3 then array[$2, $2] else (select $2 || b.path from back b where b.step = $3) end
$$;
