-- does: the canonical form of a JSON value: jsonb already orders keys and drops duplicates; numbers lose trailing zeros.
-- called by: fingerprint; the one place where the canonical form is computed.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.canonical_json(value jsonb) returns jsonb language plpgsql immutable parallel safe as $$
begin
  if value is null or value::text !~ '[.][0-9]' then
    return value;
  end if;
  case jsonb_typeof(value)
    when 'number' then return to_jsonb(trim_scale((value #>> '{}')::numeric));
    when 'array' then return (select coalesce(jsonb_agg(pawl.canonical_json(e) order by o), '[]')
      from jsonb_array_elements(value) with ordinality a(e, o));
    when 'object' then return (select coalesce(jsonb_object_agg(k, pawl.canonical_json(v)), '{}') from jsonb_each(value) o(k, v));
    else return value;
  end case;
end $$;
