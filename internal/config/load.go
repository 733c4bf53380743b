package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// Bind adds the flags of a settings struct, and --config, to a flag set. Their values are for Load.
func Bind(flags *pflag.FlagSet, target any) {
	flags.String("config", "", "file of settings in TOML (PAWL_CONFIG)")
	for _, s := range Settings(target) {
		if s.Flag() == "" {
			continue
		}
		usage := fmt.Sprintf("%s (%s)", s.Doc, s.Env())
		if s.wants() == "true or false" {
			flags.Bool(s.Flag(), s.Default == "true", usage)
		} else {
			flags.Var(&flagText{text: s.Default, kind: s.word()}, s.Flag(), usage)
		}
	}
}

// flagText keeps what a flag said for Load, which knows what it must be.
type flagText struct{ text, kind string }

// Set implements pflag.Value.
func (f *flagText) Set(text string) error { f.text = text; return nil }

// String implements pflag.Value.
func (f *flagText) String() string { return f.text }

// Type implements pflag.Value: the word for the value in the help.
func (f *flagText) Type() string { return f.kind }

// Sources are where Load looks, in this order: flags that were given, variables that are not empty, the file, the
// defaults.
type Sources struct {
	Flags *pflag.FlagSet           // as Bind filled it and the command line was parsed; nil: none
	Env   func(name string) string // nil: os.Getenv
	File  string                   // path; empty: --config, else PAWL_CONFIG, else no file
}

// Load fills a settings struct, given as a pointer. The error says all that is wrong.
func Load(target any, from Sources) error {
	if from.Env == nil {
		from.Env = os.Getenv
	}
	file := &File{}
	if path := from.path(); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading the settings: %w", err)
		}
		if file, err = Parse(path, text); err != nil {
			return err
		}
	}
	return from.fill(target, file)
}

func (from Sources) path() string {
	if from.File != "" {
		return from.File
	}
	if from.Flags != nil {
		if flag := from.Flags.Lookup("config"); flag != nil && flag.Changed {
			return flag.Value.String()
		}
	}
	return from.Env("PAWL_CONFIG")
}

func (from Sources) fill(target any, file *File) error {
	var problems []error
	for _, s := range Settings(target) {
		if s.Default != "" {
			if err := s.setText(s.Default); err != nil {
				return fmt.Errorf("default of %s: %w", s.Key, err) // a mistake in binaries.go
			}
		}
		var err error
		place := ""
		if value, ok := file.values[s.Key]; ok {
			place, err = file.path+": "+s.Key, s.setTOML(value)
		}
		if text := from.Env(s.Env()); text != "" {
			place, err = s.Env(), s.setText(text)
		}
		if from.Flags != nil && s.Flag() != "" {
			if flag := from.Flags.Lookup(s.Flag()); flag != nil && flag.Changed {
				place, err = "--"+s.Flag(), s.setText(flag.Value.String())
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", place, err))
		}
	}
	return errors.Join(problems...)
}
