package store

import "github.com/pawl-dev/pawl/messaging/pgmq"

// DB runs statements: a pool, a connection, or a transaction, in which case they are part of it.
type DB = pgmq.DB
