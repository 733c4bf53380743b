package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const ticksPerSecond = 100 // USER_HZ on every Linux that Go runs on

// treeSeconds sums the server's processes; the postmaster's own count includes backends that have ended.
func treeSeconds(postmaster int) float64 {
	total := processSeconds(postmaster, true)
	for _, pid := range children(postmaster) {
		total += processSeconds(pid, false)
	}
	return total
}

func children(parent int) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == parent {
			continue
		}
		if f := statFields(pid); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			found = append(found, pid)
		}
	}
	return found
}

// treeMB is the memory of the server's processes: each one's proportional share of what it has in common with others.
func treeMB(postmaster int) float64 {
	total := processMB(postmaster, "smaps_rollup", "Pss:")
	for _, pid := range children(postmaster) {
		total += processMB(pid, "smaps_rollup", "Pss:")
	}
	return total
}

// processMB reads a figure of /proc/PID/file; 0 when the process has ended or is not ours to read.
func processMB(pid int, file, name string) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			kilobytes, _ := strconv.ParseFloat(f[1], 64)
			return kilobytes / 1024
		}
	}
	return 0
}

// statFields are those after the command's name: state, ppid, …
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	return strings.Fields(rest)
}

func processSeconds(pid int, withChildren bool) float64 {
	f := statFields(pid)
	if len(f) < 15 {
		return 0
	}
	last := 13
	if withChildren {
		last = 15
	}
	var ticks float64
	for _, s := range f[11:last] {
		v, _ := strconv.ParseFloat(s, 64)
		ticks += v
	}
	return ticks / ticksPerSecond
}

func ownSeconds() float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

func machineSeconds() float64 {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	var ticks float64
	for i, s := range strings.Fields(line)[1:] {
		if v, err := strconv.ParseFloat(s, 64); err == nil && i != 3 && i != 4 { // not idle, not waiting
			ticks += v
		}
	}
	return ticks / ticksPerSecond
}
