package cli

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/program"
	"github.com/pawl-dev/pawl/sql"
)

type versionOutput struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	Go        string `json:"go"`
	Functions int    `json:"functions_version"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of this binary and of the SQL in it",
		Example: "  pawl version\n  pawl version --json",
		Args:    cobra.NoArgs,
		RunE: run(func(context.Context, []string) error {
			v := versionOutput{Version: program.Version(), Go: runtime.Version(), Functions: sql.FunctionsVersion}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Commit = s.Value
					}
				}
			}
			if a.json {
				return a.printJSON(v)
			}
			a.say("pawl %s (%s, SQL functions %d)", v.Version, v.Go, v.Functions)
			return nil
		}),
	}
}
