package config

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/nearest"
)

// Misspelt names the variables of an environment, given as name=value, that look like a setting's of some binary and are
// none, each with the name that was probably meant. Others that begin with PAWL_ belong to somebody else: Kubernetes sets
// such for a service called pawl.
func Misspelt(environ []string) map[string]string {
	known := []string{"CONFIG"}
	for _, target := range []any{new(Orchestrator), new(Worker)} {
		for _, s := range Settings(target) {
			known = append(known, strings.TrimPrefix(s.Env(), "PAWL_"))
		}
	}
	near := map[string]string{}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		short, ours := strings.CutPrefix(name, "PAWL_")
		if !ours || slices.Contains(known, short) {
			continue
		}
		if meant := nearest.Name(short, known); meant != "" {
			near[name] = "PAWL_" + meant
		}
	}
	return near
}
