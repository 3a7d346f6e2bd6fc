package repos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
)

type repoIndexOptions struct {
	env *command.Env

	url, urlRepo, merge, mergeRepo string
	overwrite                      bool
}

func newRepoIndex(env *command.Env) *cobra.Command {
	o := &repoIndexOptions{env: env}
	cmd := &cobra.Command{
		Use:   "index DIR",
		Short: "Make the index of a folder of archives",
		Long: `Make index.yaml of all archives in a folder and below. The same archives give the same index, byte by byte; a time of
making is written only if SOURCE_DATE_EPOCH is set (https://reproducible-builds.org/specs/source-date-epoch).

URLs of the archives are relative to the index unless --url or --url-repo is given; KUDO's own command line needs
whole ones. Archives that hold no package are left out, with a warning.`,
		Args: command.ExactArgs(1, "one folder of archives"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "URL that the folder is served at")
	f.StringVar(&o.urlRepo, "url-repo", "", "name of the repository whose URL is that")
	f.StringVar(&o.merge, "merge", "", "file or URL of an index whose entries are added; those of the folder win")
	f.StringVar(&o.mergeRepo, "merge-repo", "", "name of a repository whose entries are added")
	f.BoolVarP(&o.overwrite, "overwrite", "w", false, "replace the index that is there")
	cmd.MarkFlagsMutuallyExclusive("url", "url-repo")
	cmd.MarkFlagsMutuallyExclusive("merge", "merge-repo")
	return cmd
}

func (o *repoIndexOptions) run(ctx context.Context, dir string) error {
	target := filepath.Join(dir, repository.IndexFileName)
	old, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("index: %w", err)
	}
	if err == nil && !o.overwrite {
		return fmt.Errorf("%s exists already: use --overwrite", target)
	}
	generated, err := command.SourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	source, err := o.env.Remote()
	if err != nil {
		return err
	}
	entries, err := o.indexed(ctx, source, dir)
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	text, err := repository.EncodeIndex(entries, generated)
	if err != nil {
		return err
	}
	if bytes.Equal(text, old) {
		o.env.Printf("index %s is up to date", target)
		return nil
	}
	if err := atomicfile.Write(target, text, 0o644); err != nil {
		return err
	}
	o.env.Printf("index created: %s", target)
	return nil
}

// indexed are the entries of the folder, and those that are added to them.
func (o *repoIndexOptions) indexed(ctx context.Context, source *repository.Remote, dir string) (map[string][]repository.Entry, error) {
	base := o.url
	if base != "" {
		if err := (repository.Repository{Name: "url", URL: base}).Validate(); err != nil {
			return nil, command.UsageError("--url: %w", err)
		}
	}
	if o.urlRepo != "" {
		r, err := source.Repository(o.urlRepo)
		if err != nil {
			return nil, err
		}
		base = r.URL
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, errors.Join(err, fmt.Errorf("%s is no folder", dir))
	}
	entries, skipped, err := repository.Build(os.DirFS(dir), base)
	for _, reason := range skipped {
		o.env.Warnf("left out: %v", reason)
	}
	if err != nil {
		return nil, err
	}
	other, err := others(ctx, source, o)
	if err != nil {
		return nil, fmt.Errorf("index to merge: %w", err)
	}
	repository.Merge(entries, other)
	return entries, nil
}

// others are the entries of the index to merge.
func others(ctx context.Context, source *repository.Remote, o *repoIndexOptions) (map[string][]repository.Entry, error) {
	var r repository.Repository
	switch {
	case o.mergeRepo != "":
		var err error
		if r, err = source.Repository(o.mergeRepo); err != nil {
			return nil, err
		}
	case strings.Contains(o.merge, "://"):
		r = repository.Repository{Name: "merge", URL: strings.TrimSuffix(o.merge, "/"+repository.IndexFileName)}
		if err := r.Validate(); err != nil {
			return nil, err
		}
	case o.merge != "":
		return fileEntries(o.merge)
	default:
		return nil, nil
	}
	index, err := source.Index(ctx, r)
	if err != nil {
		return nil, err
	}
	all, err := index.All()
	if err != nil {
		return nil, err
	}
	return all, repository.Absolute(r, all)
}

// fileEntries are the entries of an index file. Their relative URLs stay as they are: where the file is served is not
// known.
func fileEntries(file string) (map[string][]repository.Entry, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	index, err := repository.ParseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return index.All()
}
