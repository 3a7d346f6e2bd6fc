package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/vuln/scan"
)

// knownIssues is the page that excuses vulnerabilities, and a file of each release.
const knownIssues = "KNOWN-ISSUES.md"

// vulnerability is one whose code a program reaches.
type vulnerability struct {
	// id in the Go vulnerability database, such as GO-2024-2687.
	id string
	// module with its version, and the version that corrects it; empty if there is none.
	module, fixed string
	// function of the module that is reached.
	function string
}

// String implements fmt.Stringer.
func (v vulnerability) String() string {
	remedy := "no version corrects it"
	if v.fixed != "" {
		remedy = v.fixed + " corrects it"
	}
	return fmt.Sprintf("%s in %s, of which %s is reached: %s", v.id, v.module, v.function, remedy)
}

// message is what govulncheck prints; fields that are not needed are left out.
type message struct {
	Config *struct {
		Modified time.Time `json:"db_last_modified"`
	} `json:"config"`
	Finding *struct {
		OSV   string `json:"osv"`
		Fixed string `json:"fixed_version"`
		Trace []struct{ Module, Version, Package, Receiver, Function string }
	} `json:"finding"`
}

// findVulnerabilities returns the vulnerabilities that packages of a module reach, each once, and when the database was changed last.
func findVulnerabilities(ctx context.Context, database, folder string, packages ...string) (
	found []vulnerability, modified time.Time, err error) {
	var out, log bytes.Buffer
	command := scan.Command(ctx, append([]string{"-db", database, "-C", folder, "-format", "json"}, packages...)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOENV=off", "GOOS=linux", "GOARCH=amd64", "GOWORK=off")
	command.Stdout, command.Stderr = &out, &log
	if err = command.Start(); err == nil {
		err = command.Wait()
	}
	if err != nil {
		return nil, modified, fmt.Errorf("%w: %s", err, log.String())
	}
	for decoder := json.NewDecoder(&out); ; {
		var m message
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF) && modified.IsZero(): // an empty folder is taken for a database without entries
			return nil, modified, fmt.Errorf("%s has no database: name the folder with index/db.json", database)
		case errors.Is(err, io.EOF):
			return found, modified, nil
		case err != nil:
			return nil, modified, err
		}
		if m.Config != nil {
			modified = m.Config.Modified
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 || m.Finding.Trace[0].Function == "" { // it is required, and not reached
			continue
		}
		at := m.Finding.Trace[0]
		v := vulnerability{m.Finding.OSV, at.Module + " " + at.Version, m.Finding.Fixed, at.Package + "." + at.Function}
		if at.Receiver != "" {
			v.function = at.Package + "." + at.Receiver + "." + at.Function
		}
		if !slices.ContainsFunc(found, func(other vulnerability) bool { return other.id == v.id }) {
			found = append(found, v)
		}
	}
}

// excuse is a row of the table of vulnerabilities: `| GO-2024-2687 | 2027-01-31 | reason |`.
var excuse = regexp.MustCompile(`(?m)^\| *(GO-\d{4}-\d{4,}) *\|([^|]*)\|([^|]*)\|? *$`)

// excuses returns until when a page excuses vulnerabilities, by their ids.
func excuses(page string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	for _, row := range excuse.FindAllStringSubmatch(page, -1) {
		until, err := time.Parse(time.DateOnly, strings.TrimSpace(row[2]))
		if err != nil || strings.TrimSpace(row[3]) == "" {
			return nil, fmt.Errorf("%s: %s has the day %q and the reason %q: write | %[2]s | 2027-01-31 | the reason |", knownIssues, row[1],
				strings.TrimSpace(row[2]), strings.TrimSpace(row[3]))
		}
		out[row[1]] = until
	}
	return out, nil
}

// checkVulnerabilities refuses programs that reach code with a known vulnerability which is not excused at the time of the commit.
func (r *release) checkVulnerabilities() error {
	page, err := os.ReadFile(knownIssues)
	if err != nil {
		return err
	}
	excused, err := excuses(string(page))
	if err != nil {
		return err
	}
	r.vulnerabilities = "not checked"
	if r.database == "" {
		fmt.Fprintln(os.Stderr, "not checked for known vulnerabilities: give VULNDB, such as https://vuln.go.dev or the file:// URL of a copy")
		return nil
	}
	found, modified, err := findVulnerabilities(context.Background(), r.database, ".", "./cmd/manager", "./cmd/kubectl-kudo")
	if err != nil {
		return err
	}
	if refused := unexcused(found, excused, r.commit.time); len(refused) > 0 {
		return fmt.Errorf("the programs reach vulnerable code:\n  %s\nupdate the module, or excuse it in %s until a day",
			strings.Join(refused, "\n  "), knownIssues)
	}
	r.vulnerabilities = "none reached of the Go vulnerability database as of " + modified.UTC().Format(time.RFC3339)
	if len(found) > 0 {
		r.vulnerabilities = fmt.Sprintf("%d reached, and excused in %s, of the Go vulnerability database as of %s", len(found), knownIssues,
			modified.UTC().Format(time.RFC3339))
	}
	return nil
}

// unexcused describes the vulnerabilities that no excuse covers at a time. An excuse covers its last day.
func unexcused(found []vulnerability, excused map[string]time.Time, at time.Time) []string {
	var out []string
	for _, v := range found {
		until, known := excused[v.id]
		switch {
		case !known:
			out = append(out, v.String())
		case !at.Before(until.AddDate(0, 0, 1)):
			out = append(out, v.String()+"; its excuse ended on "+until.Format(time.DateOnly))
		}
	}
	return out
}
