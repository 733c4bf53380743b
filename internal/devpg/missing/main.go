// Command missing prints what set-up has to bring, one word a line: postgres, pgmq.
package main

import (
	"fmt"

	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/internal/pgmqsql"
)

func main() {
	if _, err := devpg.Find(); err != nil {
		fmt.Println("postgres")
	}
	if _, err := pgmqsql.Load(); err != nil {
		fmt.Println("pgmq")
	}
}
