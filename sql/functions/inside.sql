-- does: the text between the braces of a JSON object.
-- called by: delivery_text.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.inside(object jsonb) returns text language sql immutable as $$
  select left(right(object::text, -1), -1)
$$;
