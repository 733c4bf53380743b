-- How many steps of a template wait for none: every new task counts them as active. Counted once, not for each task.
alter table pawl.templates add column root_count int not null
  generated always as (jsonb_array_length(jsonb_path_query_array(definition, '$.steps[*] ? (!exists (@.needs[*]))'))) stored;
