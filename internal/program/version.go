package program

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/pawl-dev/pawl/sql"
)

// Version of this binary: its module's, or "development".
func Version() string {
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return "development"
}

// versions is what --version says, as `pawl version` does.
func (p Program) versions() string {
	return fmt.Sprintf("%s %s (%s, SQL functions %d)\n", p.Name, Version(), runtime.Version(), sql.FunctionsVersion)
}
