// Package sql holds Pawl's database: tables (migrations), functions and triggers, embedded in every binary.
//
// It is applied by internal/migrate and promises no stability to other modules.
package sql

import (
	"embed"
	"fmt"
)

//go:generate go run ../internal/migrate/bump -dir .

// Files holds migrations/NNNN_name.sql, functions/NAME.sql, triggers/NAME.sql and functions.sum.
//
//go:embed migrations/*.sql functions/*.sql triggers/*.sql functions.sum
var Files embed.FS

// FunctionsVersion is the number of the functions and triggers in this binary. Only a higher number than the
// database's writes them. It is read from functions.sum, which `make generate` raises when a file changed.
var FunctionsVersion = functionsVersion()

// OldestBinary is the lowest FunctionsVersion of a binary that still works with this binary's database. Raise it to
// the current number in the change that breaks older binaries (a dropped function, a new meaning of a column).
const OldestBinary = 1

func functionsVersion() int {
	data, err := Files.ReadFile("functions.sum")
	if err != nil {
		panic(err) // embedded by the line above: cannot be missing
	}
	var version int
	if _, err := fmt.Sscanf(string(data), "%d", &version); err != nil {
		panic(fmt.Sprintf("reading functions.sum: %v; run `make generate`", err))
	}
	return version
}
