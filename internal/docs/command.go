package docs

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

var (
	// pawlCall is where a call of pawl begins in a line of a shell; what a pipe or a comment follows is another matter.
	pawlCall = regexp.MustCompile(`(?:^|[|;&(] *|\$ +|^.*= *\$\()(?:\S*/)?pawl( [^|;&#)]*|$)`)
	flagWord = regexp.MustCompile(`^--([a-z][a-z-]*)`)
	plain    = regexp.MustCompile(`^[a-z][a-z-]*$`)
	quoted   = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// checkCalls says what is wrong with the calls of pawl in a line: commands and flags that do not exist.
func checkCalls(tree *cobra.Command, line string) []string {
	var problems []string
	line = quoted.ReplaceAllString(line, "X") // a quoted argument may hold anything
	for _, call := range pawlCall.FindAllStringSubmatch(line, -1) {
		problems = append(problems, checkCall(tree, strings.Fields(call[1]))...)
	}
	return problems
}

func checkCall(command *cobra.Command, words []string) []string {
	var problems []string
	descending := true
	for _, word := range words {
		if match := flagWord.FindStringSubmatch(word); match != nil {
			name := match[1]
			if name != "help" && command.Flags().Lookup(name) == nil && command.InheritedFlags().Lookup(name) == nil &&
				command.PersistentFlags().Lookup(name) == nil {
				problems = append(problems, fmt.Sprintf("%s has no flag --%s", command.CommandPath(), name))
			}
			continue
		}
		if !descending || !command.HasSubCommands() || !plain.MatchString(word) {
			descending = false
			continue
		}
		next := child(command, word)
		if next == nil {
			problems = append(problems, fmt.Sprintf("%s has no command %s", command.CommandPath(), word))
			return problems
		}
		command = next
	}
	return problems
}

func child(command *cobra.Command, name string) *cobra.Command {
	for _, c := range command.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}
