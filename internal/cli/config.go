package cli

import "github.com/spf13/cobra"

func (a *app) configCommand() *cobra.Command {
	return group("config", "Apply, show and compare settings kept in the database", "")
}
