-- Entity claims are checked when a template is registered; other templates pay nothing.
do $$
declare
  missing text := pawl.missing_trigger('pawl.templates', 'create trigger check_claims before insert on pawl.templates
    for each row when ((new.definition @? ''$."steps"[*]."claim".*''::jsonpath)) execute function pawl.check_template_claims()');
begin
  if missing is not null then
    execute missing;
  end if;
end $$;
