package pgmq_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// soon is the deadline of what a busy machine may take long for.
const soon = 60 * time.Second

func testPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.DB(t)
}
