package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// pools are apart so that work that waits for locks keeps neither heartbeats nor workers from the database.
type pools struct {
	work  *pgxpool.Pool // the actors
	side  *pgxpool.Pool // heartbeats, the listener's probe, readiness
	calls *pgxpool.Pool // /v1/worker/, nil without a token
}

const (
	lockTimeout     = 5 * time.Second
	sideConnections = 3
)

func openPools(ctx context.Context, config Config) (*pools, error) {
	p := new(pools)
	var err error
	// A statement ends in a third of the visibility timeout (R13): its messages are still its own then.
	bounds := fmt.Sprintf(`set lock_timeout = %d; set statement_timeout = %d`,
		lockTimeout.Milliseconds(), max(config.VisibilityTimeout.Milliseconds()/3-100, 100))
	if p.work, err = openPool(ctx, config, config.Connections, bounds); err != nil {
		return nil, err
	}
	if p.side, err = openPool(ctx, config, sideConnections, `set statement_timeout = 10000`); err != nil {
		p.close()
		return nil, err
	}
	if config.WorkerToken != "" {
		if p.calls, err = openPool(ctx, config, config.Connections, bounds); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func openPool(ctx context.Context, of Config, connections int, settings string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(of.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("reading the database's URL: %w", err)
	}
	config.MaxConns = int32(connections) //nolint:gosec // a handful
	name(config.ConnConfig)
	// The actors wait for half of the visibility timeout. A server that does not answer is told from a slow statement only
	// before that, at two addresses and with the settings.
	limit := of.VisibilityTimeout / 7
	if own := config.ConnConfig.ConnectTimeout; own == 0 || own > limit {
		config.ConnConfig.ConnectTimeout = limit
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if _, err := conn.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol); err != nil {
			return &sqlstate.ConnectionError{Err: fmt.Errorf("setting the bounds of a connection: %w", err)}
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("opening a pool of connections: %w", err)
	}
	return pool, nil
}

// name tells the orchestrator's connections apart in pg_stat_activity, unless the URL names them.
func name(config *pgx.ConnConfig) {
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "pawl orchestrator"
	}
}

// connectListener opens the listener's own connection. Its URL may be that of the pools: what it says of pools stays here.
func connectListener(url string) (func(ctx context.Context) (*pgx.Conn, error), error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the listener's URL: %w", err)
	}
	name(config.ConnConfig)
	return pgmq.Connector(config), nil
}

// assertReadCommitted refuses a database or role whose default is another isolation level: the engine decides in
// statements that must see what was committed before they began (R4).
func assertReadCommitted(ctx context.Context, pool *pgxpool.Pool) error {
	var level string
	if err := pool.QueryRow(ctx, `select current_setting('transaction_isolation')`).Scan(&level); err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	if level != "read committed" {
		return fmt.Errorf("the default isolation level is %q, and the engine needs \"read committed\": reset "+
			"default_transaction_isolation for this role, database or URL", level)
	}
	return nil
}

func (p *pools) close() {
	for _, pool := range []*pgxpool.Pool{p.work, p.side, p.calls} {
		if pool != nil {
			pool.Close()
		}
	}
}
