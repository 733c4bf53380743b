package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// How often a start is tried: the wait doubles from the one to the other; a try that hangs is given up.
const (
	pauseMin = 200 * time.Millisecond
	pauseMax = 5 * time.Second
	tryLimit = 20 * time.Second
)

// Await calls start until it succeeds, while the reason that it does not is a database that cannot be reached, for so long
// at most. Everything else is an error at once: a wrong password, a missing database, missing migrations. start is given a
// context for connecting; what it starts must not end with it.
func Await(ctx context.Context, wait time.Duration, log *slog.Logger, start func(ctx context.Context) error) error {
	until := time.Now().Add(wait)
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		connecting, cancel := context.WithTimeout(ctx, tryLimit)
		err := start(connecting)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || !unreachable(err):
			return sqlstate.Explain(err)
		case time.Now().Add(pause).After(until):
			return fmt.Errorf("%w; gave up after trying for %s, which --connect-wait sets", err, wait)
		}
		log.Warn("the database cannot be reached, trying again", "in", pause.String(), "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// unreachable says whether the connection failed, not what was asked of it. Other than while running, a login that is
// refused is a mistake of whoever starts the program; a full server is waited for, as one that starts.
func unreachable(err error) bool {
	if code := sqlstate.Of(err); code != "" {
		return sqlstate.Leaving(code) || code == sqlstate.TooManyConnections
	}
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	if errors.As(err, &certificate) || errors.As(err, &noTLS) {
		return false
	}
	var connecting *pgconn.ConnectError
	var broken *net.OpError // of a connection that was there; one that listens is somebody else's
	return errors.As(err, &connecting) || errors.As(err, &broken) && (broken.Op == "read" || broken.Op == "write") ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}
