package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Programs that a stage runs.
type Programs struct{ Pawl, Orchestrator, Worker, LedgerWorker string }

const module = "github.com/pawl-dev/pawl/"

// Build builds the programs of a source tree into a folder. Trees of earlier commits may lack the ledger worker: it is
// only built when ledger is true. Source "" is the module of the current directory.
func Build(ctx context.Context, source, folder string, ledger bool) (Programs, error) {
	programs := Programs{
		Pawl: filepath.Join(folder, "pawl"), Orchestrator: filepath.Join(folder, "orchestrator"),
		Worker: filepath.Join(folder, "worker"), LedgerWorker: filepath.Join(folder, "ledgerworker"),
	}
	packages := []string{module + "cmd/pawl", module + "cmd/orchestrator", module + "cmd/worker"}
	if ledger {
		packages = append(packages, module+"test/cluster/ledgerworker")
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", folder + string(filepath.Separator)}, packages...)...)
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return programs, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return programs, nil
}
