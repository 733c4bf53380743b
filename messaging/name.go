package messaging

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	handlerPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)
)

// TemplateRef names a template: namespace/name, or namespace/name@version.
type TemplateRef struct {
	Namespace, Name string
	Version         string // empty: the latest that was applied
}

// ParseTemplateRef reads "namespace/name" or "namespace/name@version".
func ParseTemplateRef(text string) (TemplateRef, error) {
	path, version, versioned := strings.Cut(text, "@")
	namespace, name, ok := strings.Cut(path, "/")
	switch {
	case !ok:
		return TemplateRef{}, errors.New(`no "/": write namespace/name or namespace/name@version`)
	case !namePattern.MatchString(namespace):
		return TemplateRef{}, errors.New("bad namespace: use 1 to 63 characters a-z, 0-9 and _, the first a letter")
	case !namePattern.MatchString(name):
		return TemplateRef{}, errors.New("bad name: use 1 to 63 characters a-z, 0-9 and _, the first a letter")
	case versioned && !versionPattern.MatchString(version):
		return TemplateRef{}, errors.New("bad version: use 1 to 63 characters A-Z, a-z, 0-9, point, _ and -, the first a letter or digit")
	}
	return TemplateRef{Namespace: namespace, Name: name, Version: version}, nil
}

// String is the text that ParseTemplateRef reads.
func (r TemplateRef) String() string {
	if r.Version == "" {
		return r.Namespace + "/" + r.Name
	}
	return r.Namespace + "/" + r.Name + "@" + r.Version
}

func checkHandler(handler string) error {
	if !handlerPattern.MatchString(handler) {
		return errors.New("use 1 to 128 characters A-Z, a-z, 0-9, point, _ and -, the first a letter")
	}
	return nil
}

func checkNamespace(namespace string) error {
	if !namePattern.MatchString(namespace) {
		return errors.New("use 1 to 63 characters a-z, 0-9 and _, the first a letter")
	}
	return nil
}

// checkDefaultQueue is for a namespace whose steps name no queue.
func checkDefaultQueue(namespace string) error {
	if err := ValidateStepQueueName(NamespaceQueue(namespace)); err != nil {
		return fmt.Errorf("its queue would be refused; name one in queue: %w", err)
	}
	return nil
}
