-- Both ends of an edge are looked up without its other end. While both keys began with the template, the planner took either
-- of them for either end where its statistics knew of small templates only, and read all edges of a large one for each step.
alter table pawl.template_edges drop constraint template_edges_pkey;
alter table pawl.template_edges add primary key (parent, template_id, child);
drop index pawl.template_edges_child;
create index template_edges_child on pawl.template_edges (child, template_id, parent);
-- Every report asks which queues are gated: of thousands, mostly none.
create index queues_gated on pawl.queues (queue) where gated;
-- Their place is taken by functions with other arguments.
drop function if exists pawl.lost_attempts(uuid[], interval), pawl.sweep_step_keys(int);
