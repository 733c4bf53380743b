// Command fetch puts PGMQ's SQL into the cache, for scripts/setup.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/internal/pgmqsql"
)

func main() {
	if _, err := pgmqsql.Ensure(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}
