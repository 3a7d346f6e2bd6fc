// Command release builds what a release of kudo consists of, without a container engine and without a network but that for Go modules:
//
//	release -version v0.2.0 -image registry.example.org/kudo/manager -url https://example.org/kudo/v0.2.0 [-catalog URL]
//	  [-vulndb URL] [-snapshot] [-o FOLDER] [-sign-key FILE | -signer PROGRAM -signer-key FILE]
//
// It runs in the root of the sources. The same commit gives the same bytes, in whatever folder and by whatever user: a second machine
// confirms a release by the file SHA256SUMS.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// release is one run of this command.
type release struct {
	// version is that of the tag, such as v0.2.0.
	version string
	// image is where the manager's image is going to be pushed, without tag and digest.
	image string
	// url is where the files are going to be downloaded from, and where people find the project.
	url string
	// catalog is where the packages of the catalog are going to be downloaded from.
	catalog string
	// database is the URL of the Go vulnerability database; empty if the programs are not checked.
	database string
	// vulnerabilities says what the check has found.
	vulnerabilities string
	// digest of the image.
	digest string
	// out is the folder of the files.
	out string
	// work is a folder of files that are not part of the release.
	work   string
	commit commit
	// notes are the section of CHANGELOG.md.
	notes string
	// signing signs the release; nil if it is not signed.
	signing *key
	// public is the key that users verify the release with, or nil if there is none.
	public *key
}

func main() {
	r := &release{}
	flag.StringVar(&r.version, "version", "", "the `version`, which is the tag of the commit; with -snapshot, it is computed")
	flag.StringVar(&r.image, "image", "", "the `repository` that the manager's image is going to be in, without a tag")
	flag.StringVar(&r.url, "url", "", "the `address` that the files are going to be downloaded from")
	flag.StringVar(&r.catalog, "catalog", "", "the `address` of the repository that users have at first (default that of -url)")
	flag.StringVar(&r.database, "vulndb", "",
		"the `URL` of the Go vulnerability database or of a copy, to refuse programs that reach vulnerable code")
	flag.StringVar(&r.out, "o", "", "the `folder` of the files (default dist/release/VERSION)")
	only := flag.String("platforms", "", "build for these `platforms` only, such as linux/amd64,linux/arm64, for a trial")
	snapshot := flag.Bool("snapshot", false, "release a commit without a tag, for a trial")
	keys := keyFlags{password: readPassword}
	flag.StringVar(&keys.private, "sign-key", "", "sign with the private key in this `file`, PKCS#8 in PEM; SIGN_PASSWORD has its password")
	flag.StringVar(&keys.signer, "signer", "", "sign by this `program`, which reads bytes and writes their signature")
	flag.StringVar(&keys.public, "signer-key", "", "the `file` with the public key of the program, in PEM")
	flag.Parse()
	if *only != "" {
		others := func(p platform) bool { return !slices.Contains(strings.Split(*only, ","), p.String()) }
		platforms, managerPlatforms = slices.DeleteFunc(platforms, others), slices.DeleteFunc(managerPlatforms, others)
	}
	if err := r.run(keys, *snapshot); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(keys keyFlags, snapshot bool) (err error) {
	if r.signing, err = keys.read(); err != nil {
		return err
	}
	if r.commit, err = readCommit(); err != nil {
		return err
	}
	if err := r.check(snapshot); err != nil {
		return err
	}
	if r.out == "" {
		r.out = filepath.Join("dist", "release", r.version)
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "kudo-release-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.work) }()
	begin := time.Now()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"vulnerabilities", r.checkVulnerabilities},
		{"manager for " + names(managerPlatforms), r.buildManagers},
		{"image", r.packImage},
		{"command line for " + names(platforms), r.buildCommands},
		{"manifests", r.writeManifests},
		{"Helm chart", r.writeChart},
		{"archives", r.packCommands},
		{"catalog", r.packCatalog},
		{"krew manifest", r.writeKrew},
		{"release notes", r.writeNotes},
		{"SBOMs", r.writeSBOMs},
		{"provenance", r.writeProvenance},
		{"checksums", r.writeSums},
		{"signatures", r.signFiles},
	} {
		from := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(os.Stderr, "%-8s %s\n", time.Since(from).Round(100*time.Millisecond), step.name)
	}
	fmt.Fprintf(os.Stderr, "%-8s in all\n", time.Since(begin).Round(100*time.Millisecond))
	fmt.Printf("%s\nimage %s@%s\n", r.out, r.image, r.digest)
	return nil
}
