alter table pawl.steps validate constraint counts_are_natural;
