// Package pgmqsql finds and fetches upstream's SQL of PGMQ, for servers that do not offer it as an extension.
//
// It is never a copy in this repository: PAWL_PGMQ_SQL names a file, else the cache that set-up (or `pawl dev`) filled
// holds one whose checksum is known.
package pgmqsql
