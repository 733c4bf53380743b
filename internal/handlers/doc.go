// Package handlers has handlers that need no program of their own: for measuring, demonstrations and tests that kill
// workers. The command worker serves them by name.
//
//	noop   does nothing, returns null
//	echo   returns its input
//	sleep  input {"ms": 100}: sleeps, unless its context ends before
//	fail   input {"type": "…", "message": "…", "permanent": false, "attempts": 2}: fails, the first attempts or always
package handlers
