// Package crdcache has the commands of the cache of CRD tarballs.
package crdcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/text"
)

type cacheOptions struct {
	env *command.Env

	dir, output string
}

// New returns the command cache.
func New(env *command.Env) *cobra.Command {
	o := &cacheOptions{env: env}
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Manage a cache of CRD tarballs",
		Long: `Manage a folder that the manager caches CRD tarballs in (its --cache-dir). None of these commands needs a
cluster or a network: a folder that was filled here can be carried to a site without internet, where Instances with
crdDownloadPolicy Never use it.

  kubectl kudo cache import https://example.org/spark/3.5.1/crds.tar.gz crds.tar.gz --cache-dir carry
  kubectl kudo cache verify --cache-dir carry`,
	}
	command.SetupGroup(cmd)
	// Takes the place of kubectl's flag of that name, which is of no use to commands without a cluster.
	cmd.PersistentFlags().StringVar(&o.dir, "cache-dir", crdtarball.DefaultDir, "folder of the cache")
	cmd.AddCommand(newList(o), newVerify(o), newImport(o), newExport(o), newPrune(o))
	return cmd
}

// openExisting opens a cache that is there: looking at one does not make it.
func (o *cacheOptions) openExisting() (*crdtarball.Cache, error) {
	if err := command.CheckFormat(o.output); err != nil {
		return nil, err
	}
	if info, err := os.Stat(o.dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no cache folder %s: name it by --cache-dir", o.dir)
	}
	return crdtarball.Open(crdtarball.Options{Dir: o.dir})
}

func (o *cacheOptions) addOutput(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "yaml or json")
}

func newList(o *cacheOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the tarballs in the cache, the one used last first", Args: command.ExactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			cache, err := o.openExisting()
			if err != nil {
				return err
			}
			entries, err := cache.List()
			if err != nil {
				return err
			}
			return o.printEntries(entries)
		},
	}
	o.addOutput(cmd)
	return cmd
}

func (o *cacheOptions) printEntries(entries []crdtarball.Entry) error {
	if o.output != "" {
		return o.env.PrintValue(o.output, entries)
	}
	if len(entries) == 0 {
		o.env.Printf("the cache %s is empty", o.dir)
		return nil
	}
	rows := [][]string{{"KEY", "SIZE", "USED", "DIGEST", "URL", "PROBLEM"}}
	for _, e := range entries {
		used := ""
		if !e.UsedAt.IsZero() {
			used = duration.HumanDuration(o.env.Now().Sub(e.UsedAt)) + " ago"
		}
		rows = append(rows, []string{e.Key[:12], resource.NewQuantity(e.Bytes, resource.BinarySI).String(), used, shortDigest(e.Digest), e.URL,
			text.OneLine(e.Problem)})
	}
	return o.env.PrintTable(rows)
}

// shortDigest is as much of a digest as a table shows.
func shortDigest(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }

func newVerify(o *cacheOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Check each byte and each document of all tarballs in the cache", Args: command.ExactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			cache, err := o.openExisting()
			if err != nil {
				return err
			}
			entries, err := cache.Verify()
			if err != nil {
				return err
			}
			return o.verdictOfEntries(entries)
		},
	}
	o.addOutput(cmd)
	return cmd
}

func (o *cacheOptions) verdictOfEntries(entries []crdtarball.Entry) error {
	if o.output != "" {
		if err := o.env.PrintValue(o.output, entries); err != nil {
			return err
		}
	}
	broken := 0
	for _, e := range entries {
		verdict := fmt.Sprintf("good, %d CRDs", len(e.CRDs))
		if e.Problem != "" {
			broken++
			verdict = "damaged: " + e.Problem
		}
		if o.output == "" {
			o.env.Printf("%s %s %s", e.Key[:12], e.URL, verdict)
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d entries are damaged: import them again, or remove them by kubectl kudo cache prune", broken, len(entries))
	}
	if o.output == "" {
		o.env.Printf("%d entries, all good", len(entries))
	}
	return nil
}

func newImport(o *cacheOptions) *cobra.Command {
	var pin string
	cmd := &cobra.Command{
		Use:   "import URL FILE",
		Short: "Put a tarball into the cache, as if it had come from a URL",
		Long: `Put a tarball into the cache, as if it had come from a URL, after all the checks that a download has. FILE may be -, for
the standard input. URL is what crdTarball.httpSource.url resolves to, exactly; or oci:// and the reference of ociSource;
or configmap://<namespace>/<name>[:<key>],… for configMapSource.`,
		Args: command.ExactArgs(2, "a URL and a file (or -)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.importTarball(cmd.Context(), args[0], args[1], pin)
		},
	}
	cmd.Flags().StringVar(&pin, "sha256", "", "the SHA-256 that the tarball must have, in hex")
	o.addOutput(cmd)
	return cmd
}

func (o *cacheOptions) importTarball(ctx context.Context, url, name, pin string) error {
	if err := command.CheckFormat(o.output); err != nil {
		return err
	}
	if err := crdtarball.CheckIdentity(url); err != nil {
		return err
	}
	from := o.env.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	cache, err := crdtarball.Open(crdtarball.Options{Dir: o.dir})
	if err != nil {
		return err
	}
	imported, err := cache.Import(ctx, url, pin, from)
	if err != nil {
		return err
	}
	if o.output != "" {
		return o.env.PrintValue(o.output, map[string]any{"key": imported.Key, "url": imported.URL, "digest": imported.Digest,
			"crds": imported.Names})
	}
	o.env.Printf("imported %s with %d CRDs as %s", imported.Digest, len(imported.Names), imported.URL)
	o.env.Printf("key: %s", imported.Key)
	return nil
}

func newExport(o *cacheOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "export KEY|URL FILE",
		Short: "Write a tarball of the cache into a file",
		Long:  `Write a tarball of the cache into a file (or -, for the standard output), as it came, after checking it.`,
		Args:  command.ExactArgs(2, "a key or a URL, and a file (or -)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := o.openExisting()
			if err != nil {
				return err
			}
			key, err := cache.Find(args[0])
			if err != nil {
				return err
			}
			return cacheExport(cmd.Context(), o.env, cache, key, args[1])
		},
	}
}

func cacheExport(ctx context.Context, env *command.Env, cache *crdtarball.Cache, key, name string) error {
	var data bytes.Buffer
	exported, err := cache.Export(ctx, key, &data)
	if err != nil {
		return err
	}
	if name == "-" {
		_, err := io.Copy(env.Out, &data)
		return err
	}
	if err := atomicfile.Write(name, data.Bytes(), 0o644); err != nil {
		return err
	}
	env.Printf("exported %s of %s to %s", exported.Digest, exported.URL, name)
	return nil
}

type pruneOptions struct {
	all       bool
	olderThan time.Duration
	maxSize   string
}

func newPrune(o *cacheOptions) *cobra.Command {
	p := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune [KEY|URL]...",
		Short: "Remove tarballs from the cache",
		Long: `Remove tarballs from the cache: damaged ones, and those that are named or that the flags say. Those in use stay.

  kubectl kudo cache prune --older-than 720h
  kubectl kudo cache prune --max-size 500Mi`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return o.prune(p, args) },
	}
	cmd.Flags().BoolVar(&p.all, "all", false, "remove all")
	cmd.Flags().DurationVar(&p.olderThan, "older-than", 0, "remove what was not used for so long, such as 720h")
	cmd.Flags().StringVar(&p.maxSize, "max-size", "", "remove what was used least recently until the rest has no more, such as 500Mi")
	return cmd
}

func (o *cacheOptions) prune(p *pruneOptions, names []string) error {
	cache, err := o.openExisting()
	if err != nil {
		return err
	}
	doomed, err := p.evictionCandidates(cache, names, o.env.Now())
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range doomed {
		if err := cache.Remove(e.Key); err != nil {
			errs = append(errs, err)
			continue
		}
		o.env.Printf("removed %s %s", e.Key[:12], e.URL)
	}
	if len(doomed) == 0 {
		o.env.Printf("nothing to remove")
	}
	return errors.Join(errs...)
}

// evictionCandidates are the entries to be removed.
func (p *pruneOptions) evictionCandidates(cache *crdtarball.Cache, names []string, now time.Time) ([]crdtarball.Entry, error) {
	if p.olderThan < 0 {
		return nil, command.UsageError("--older-than %s: must not be negative", p.olderThan)
	}
	most := int64(-1)
	if p.maxSize != "" {
		quantity, err := resource.ParseQuantity(p.maxSize)
		if err != nil || quantity.Sign() < 0 {
			return nil, command.UsageError("invalid --max-size %q: write it like 500Mi", p.maxSize)
		}
		most = quantity.Value()
	}
	named := map[string]bool{}
	for _, name := range names {
		key, err := cache.Find(name)
		if err != nil {
			return nil, err
		}
		named[key] = true
	}
	entries, err := cache.Verify()
	if err != nil {
		return nil, err
	}
	var doomed []crdtarball.Entry
	kept := int64(0)
	for _, e := range entries { // the one used last first
		old := p.olderThan > 0 && now.Sub(e.UsedAt) > p.olderThan
		over := most >= 0 && kept+e.Bytes > most
		if p.all || named[e.Key] || e.Problem != "" || old || over {
			doomed = append(doomed, e)
			continue
		}
		kept += e.Bytes
	}
	return doomed, nil
}
