-- Entity claims are checked when a template is registered; other templates pay nothing.
create or replace trigger check_claims before insert on pawl.templates
  for each row when (new.definition @? '$.steps[*].claim.*') execute function pawl.check_template_claims();
