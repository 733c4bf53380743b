alter table pawl.tasks validate constraint counts_are_natural;
