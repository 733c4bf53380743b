-- The rights of the roles, where an owner has installed them (install_roles).
select pawl.refresh_roles();
