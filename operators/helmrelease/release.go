// Package helmrelease reads releases of Helm as Helm stores them, and writes operator packages of them.
package helmrelease

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// SecretType is the type of the Secrets that Helm stores releases in.
const SecretType = "helm.sh/release.v1"

// What is read of a release at most. A Secret holds 1 MiB.
const (
	// MaxStored is the size of the stored text.
	MaxStored = 2 << 20
	// MaxContent is the size of a release once it is unpacked.
	MaxContent = 32 << 20
	// maxHooks is the number of hooks, and maxEvents that of the events and of the deletion policies of each.
	maxHooks  = 200
	maxEvents = 50
	// maxFiles is the number of files of the chart outside of its templates.
	maxFiles = 5000
)

// Release is a revision of a release of Helm.
type Release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Version is the revision; 0 for objects of a chart that were not installed.
	Version int `json:"version"`
	Info    struct {
		Status string `json:"status"`
	} `json:"info"`
	Chart Chart `json:"chart"`
	// Manifest holds the objects as they were rendered, in the order in which Helm creates them.
	Manifest string `json:"manifest"`
	Hooks    Hooks  `json:"hooks"`
}

// Chart is what a release keeps of its chart.
type Chart struct {
	Metadata struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		AppVersion  string `json:"appVersion"`
		Description string `json:"description"`
		Home        string `json:"home"`
	} `json:"metadata"`
	// Files are the files of the chart outside of its templates. Helm keeps none of subcharts.
	Files Files `json:"files"`
}

// File is a file of a chart.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Hook is an object that Helm creates at events.
type Hook struct {
	Name           string   `json:"name"`
	Manifest       string   `json:"manifest"`
	Events         Events   `json:"events"`
	Weight         int      `json:"weight"`
	DeletePolicies Policies `json:"delete_policies"`
}

// Lists of a release, whose length is bounded.
type (
	// Hooks are those of a release.
	Hooks []Hook
	// Files are those of a chart.
	Files []File
	// Events are those at which a hook runs.
	Events []string
	// Policies are those by which Helm deletes a hook.
	Policies []string
)

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hooks) UnmarshalJSON(data []byte) (err error) {
	*h, err = decodeList[Hook](data, maxHooks, "hooks")
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Files) UnmarshalJSON(data []byte) (err error) {
	*f, err = decodeList[File](data, maxFiles, "files of the chart")
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Events) UnmarshalJSON(data []byte) (err error) {
	*e, err = decodeList[string](data, maxEvents, "events of a hook")
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Policies) UnmarshalJSON(data []byte) (err error) {
	*p, err = decodeList[string](data, maxEvents, "deletion policies of a hook")
	return err
}

// gzipMagic are the first bytes of what gzip has packed. Helm 2 did not pack releases.
var gzipMagic = []byte{0x1f, 0x8b, 0x08}

// Decode reads a release from the value of the key "release" of its Secret: gzipped JSON in base64.
func Decode(stored []byte) (*Release, error) {
	if len(stored) > MaxStored {
		return nil, fmt.Errorf("the release is stored in %d bytes, more than %d", len(stored), MaxStored)
	}
	packed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(stored)))
	if err != nil {
		return nil, fmt.Errorf("the release is not stored as base64: %w", err)
	}
	text := packed
	if bytes.HasPrefix(packed, gzipMagic) {
		if text, err = unpack(packed); err != nil {
			return nil, err
		}
	}
	release := &Release{}
	if err := json.Unmarshal(text, release); err != nil {
		return nil, fmt.Errorf("read the release as JSON: %w", err)
	}
	switch {
	case release.Name == "":
		return nil, errors.New("the release has no name")
	case release.Version < 1:
		return nil, fmt.Errorf("the release has the revision %d, which Helm does not write", release.Version)
	}
	return release, nil
}

// unpack returns what gzip has packed, if it is not too large.
func unpack(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the release: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, MaxContent+1))
	if err != nil {
		return nil, fmt.Errorf("unpack the release: %w", err)
	}
	if len(text) > MaxContent {
		return nil, fmt.Errorf("the release has more than %d bytes once it is unpacked", MaxContent)
	}
	return text, nil
}
