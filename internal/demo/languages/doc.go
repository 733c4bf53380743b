// Package languages finds what runs the demo's workers of other languages than Go: an interpreter with its driver, and the
// examples of the SDKs in a checkout of this repository. It installs nothing; scripts/setup demo does.
package languages
