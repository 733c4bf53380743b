// Command pawl is the command line: it migrates a database, applies templates, submits tasks, shows and moves them.
package main

import (
	"os"

	"github.com/pawl-dev/pawl/internal/cli"
)

func main() { os.Exit(cli.Main()) }
