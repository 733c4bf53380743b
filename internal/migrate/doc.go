// Package migrate brings a database to the binary's SQL: PGMQ, tables, functions, triggers.
//
// Every piece is one transaction that first takes the migration lock and then looks again at what is there, so any
// number of processes may run Up at once, and one that dies leaves a whole number of pieces behind: running Up again
// goes on from there. Migrations only go forward. Functions and triggers are written when the binary's number is higher
// than the database's, all of them in one transaction.
package migrate
