package languages

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/cachedir"
)

// Command starts a worker; it works until its standard input ends.
type Command struct {
	Args []string
	Dir  string
	Env  []string // beside the environment
}

// Python is sdk/python/examples/mails.py under the name given. The error says in a few words what there is not.
func Python(name string) (Command, error) {
	root, err := checkout()
	if err != nil {
		return Command{}, err
	}
	python, packages, err := findPython()
	if err != nil {
		return Command{}, err
	}
	path := filepath.Join(root, "sdk", "python")
	if packages != "" {
		path += string(filepath.ListSeparator) + packages
	}
	return Command{
		Args: []string{python, "-m", "pawl", "worker", "mails:worker", "--name", name, "--until-eof"},
		Dir:  filepath.Join(root, "sdk", "python", "examples"),
		Env:  []string{"PYTHONPATH=" + path, "PYTHONDONTWRITEBYTECODE=1"},
	}, nil
}

// findPython returns an interpreter, and the folder of packages that it needs to find psycopg, if any.
func findPython() (python, packages string, err error) {
	unpacked, err := cachedir.Path("python")
	if err != nil {
		return "", "", err
	}
	for _, packages := range []string{"", unpacked} {
		for _, python := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3"} {
			if python == "" {
				continue
			}
			try := exec.Command(python, "-c", "import sys, psycopg; sys.exit(sys.version_info < (3, 11))")
			try.Env = append(os.Environ(), "PYTHONPATH="+packages)
			if try.Run() == nil {
				return python, packages, nil
			}
		}
	}
	return "", "", errors.New("this machine has no Python 3.11 or later with psycopg 3")
}
