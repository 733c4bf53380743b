package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/program"
)

const hintNoDatabase = `For a private one: pawl dev
Else name yours: export PAWL_DATABASE_URL=postgres://user@host/database`

const connectTimeout = 10 * time.Second

// url is the database of this run: the flag, the environment, else that of a running `pawl dev`.
func (a *app) url() (string, error) {
	if a.databaseURL != "" {
		return a.databaseURL, nil
	}
	if url := os.Getenv("PAWL_DATABASE_URL"); url != "" {
		return url, nil
	}
	if path, err := devFile(); err == nil {
		if url := announced(path); url != "" {
			return url, nil
		}
	}
	return "", &failure{code: ExitUnavailable, err: errors.New("no database is named"),
		hint: "Start a private one with: pawl dev\nElse name yours: export PAWL_DATABASE_URL=postgres://user@host/database"}
}

// connect opens a pool without looking at what the database holds.
func (a *app) connect(ctx context.Context) (*pgxpool.Pool, error) {
	url, err := a.url()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, usagef("%w", program.NoURL("the database URL"))
	}
	config.MaxConns = 4
	if config.ConnConfig.ConnectTimeout == 0 { // the URL says nothing of it
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if _, ok := config.ConnConfig.RuntimeParams["application_name"]; !ok {
		config.ConnConfig.RuntimeParams["application_name"] = "pawl"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		err = fmt.Errorf("connecting to the database: %w", err)
		if named := a.databaseURL != "" || os.Getenv("PAWL_DATABASE_URL") != ""; !named && !answers(ctx, url) {
			err = &failure{code: ExitUnavailable, err: errors.New(oneByOne(err.Error())),
				hint: "That is the address of a pawl dev that was killed. Start one anew: pawl dev\nElse name your database: export PAWL_DATABASE_URL=postgres://user@host/database"}
		}
		return nil, err
	}
	return pool, nil
}

// open is connect for commands that need Pawl's schema.
func (a *app) open(ctx context.Context) (*pgxpool.Pool, error) {
	pool, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := migrate.Check(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("looking at the database: %w", err)
	}
	return pool, nil
}

// database is what a command works on: the client does what programs can do as well.
type database struct {
	*pgxpool.Pool
	client *client.Client
}

// with opens the database for one piece of work.
func (a *app) with(ctx context.Context, work func(*database) error) error {
	pool, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	c, err := client.New(client.Config{Pool: pool, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer c.Close()
	return grantHint(work(&database{pool, c}), "pawl_operator")
}
