package pgmq

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Connector returns a function that opens connections as a pool of this config
// does, with its BeforeConnect (which may bring a fresh password) and its
// AfterConnect, but outside of any pool and without its OnNotification, which would
// take what a listener is to hear: for [ListenerConfig.Connect]. The caller closes
// them. The config must not change any more; [pgxpool.Pool.Config] gives a copy.
func Connector(config *pgxpool.Config) func(ctx context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		own := config.ConnConfig.Copy()
		if config.BeforeConnect != nil {
			if err := config.BeforeConnect(ctx, own); err != nil {
				return nil, err
			}
		}
		own.OnNotification = nil
		conn, err := pgx.ConnectConfig(ctx, own)
		if err != nil || config.AfterConnect == nil {
			return conn, err
		}
		if err := config.AfterConnect(ctx, conn); err != nil {
			_ = conn.Close(ctx) // it is of no use, however it goes
			return nil, err
		}
		return conn, nil
	}
}
