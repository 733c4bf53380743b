// Package config reads settings: of a process, from flags, environment (PAWL_…), a TOML file and defaults, the first of
// them that says something; and of the database (queues, templates, the engine), from the same file, for
// `pawl config apply`.
//
// A setting stands once, as a field with its key, default and explanation in the field's tags; flags, variables, the
// file's strict reading and the table in the documents come from there. Whatever a file holds that nobody reads is an
// error that names what was probably meant, and all errors are said at once.
package config
