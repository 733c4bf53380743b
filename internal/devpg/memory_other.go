//go:build !linux

package devpg

func inMemory() string { return "" }
