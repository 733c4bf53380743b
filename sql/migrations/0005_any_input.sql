-- Whether a template's requests can be judged without looking at its input schema.
alter table pawl.templates add column takes_any_input boolean not null
  generated always as (coalesce(definition->'input_schema', 'null') = 'null') stored;
