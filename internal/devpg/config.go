package devpg

import (
	"log/slog"
	"maps"
)

// Config of Start. The zero value is a durable server in a temporary folder that goes away with it.
type Config struct {
	// Dir is the server's folder; it is made, and kept after Stop. Default: a temporary one, removed by Stop.
	Dir string
	// InMemory makes the temporary folder in memory where the machine has a place with room for it (/dev/shm on Linux): on a
	// disk the many databases that tests make and drop take twice the time. Default: the system's folder for temporary files.
	InMemory bool
	// Port on loopback. Default: a free one.
	Port int
	// Settings of postgresql.conf, over the defaults (max_connections 300, shared_buffers 256 MB, …). Default: none.
	Settings map[string]string
	// Environment is added to that of the server's processes. Default: none.
	Environment []string
	// Logger gets a line when the server runs and when it stops. Default: none.
	Logger *slog.Logger

	lookInterval string // of Share, in seconds; tests are less patient
}

// lookInterval in seconds: so often Share looks for users; idle twelve times in a row stops the server.
const lookInterval = "5"

// User of the server's databases: its superuser.
const User = "postgres"

// TestSettings give up durability for speed, and allow what only tests use. Never for `pawl dev`, demo or bench.
func TestSettings() map[string]string {
	return map[string]string{
		"fsync": "off", "full_page_writes": "off",
		"checkpoint_timeout": "30min", "max_wal_size": "2GB", "min_wal_size": "256MB",
		"max_prepared_transactions": "20",
	}
}

func (c Config) withDefaults() Config {
	settings := map[string]string{
		"max_connections": "300", "shared_buffers": "256MB",
		"timezone": "UTC", "log_timezone": "UTC",
		"max_wal_size": "2GB",
	}
	maps.Copy(settings, c.Settings)
	c.Settings = settings
	if c.lookInterval == "" {
		c.lookInterval = lookInterval
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
