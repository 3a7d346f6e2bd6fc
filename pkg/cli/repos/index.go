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
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
)

type repoIndexOptions struct {
	env *command.Env

	url, urlRepo, merge, mergeRepo string
	overwrite                      bool
	keys                           command.KeyFlags
	valid                          time.Duration
}

// validIndex is how long the signature of an index is valid by default.
const validIndex = 30 * 24 * time.Hour

func newRepoIndex(env *command.Env) *cobra.Command {
	o := &repoIndexOptions{env: env}
	cmd := &cobra.Command{
		Use:   "index DIR",
		Short: "Make the index of a folder of archives",
		Long: `Make index.yaml of all archives in a folder and below. The same archives give the same index, byte by byte; a time of
making is written only if SOURCE_DATE_EPOCH is set (https://reproducible-builds.org/specs/source-date-epoch).

URLs of the archives are relative to the index unless --url or --url-repo is given; KUDO's own command line needs
whole ones. Archives that hold no package are left out, with a warning.

With --sign-key or --signer, index.yaml.sigstore.json beside the index gets a signature, which ends after a time: sign again
before, also if no package has changed. Users who add the repository by repo add --key take no other index.`,
		Args: command.ExactArgs(1, "one folder of archives"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "URL that the folder is served at")
	f.StringVar(&o.urlRepo, "url-repo", "", "name of the repository whose URL is that")
	f.StringVar(&o.merge, "merge", "", "file or URL of an index whose entries are added; those of the folder win")
	f.StringVar(&o.mergeRepo, "merge-repo", "", "name of a repository whose entries are added")
	f.BoolVarP(&o.overwrite, "overwrite", "w", false, "replace the index that is there")
	f.DurationVar(&o.valid, "valid", validIndex, "how long the signature of the index is valid")
	o.keys.Add(env, f, "sign-key")
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
	var signer *trust.Signer
	if o.keys.IsSet() {
		if signer, err = o.keys.Read(); err != nil {
			return err
		}
	}
	former, err := repository.ReadSignatures(target)
	switch {
	case err != nil:
		return err
	case o.valid <= 0:
		return command.UsageError("--valid %s: name a time in which the repository is signed again, such as %s", o.valid, validIndex)
	case signer == nil && len(former) > 0:
		return fmt.Errorf("%s is signed, and users may need the signature: sign the new one by --sign-key, or delete %s", target,
			target+repository.SignaturesSuffix)
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
	} else {
		if err := atomicfile.Write(target, text, 0o644); err != nil {
			return err
		}
		o.env.Printf("index created: %s", target)
	}
	if signer == nil {
		return nil
	}
	return o.sign(ctx, target, text, former, signer)
}

// sign signs an index and replaces its former signatures. The sequence is the time in seconds since 1970, so that several machines can make
// indexes in turn. If a former signature has this sequence or a higher one, the new sequence is one more.
func (o *repoIndexOptions) sign(ctx context.Context, target string, text []byte, former [][]byte, signer *trust.Signer) error {
	now := o.env.Now().UTC().Truncate(time.Second)
	signed := trust.Index{Digest: digest.FromBytes(text).String(), Sequence: max(1, now.Unix()), Expires: now.Add(o.valid)}
	for _, bundle := range former {
		signed.Sequence = max(signed.Sequence, trust.SequenceOf(bundle)+1)
	}
	bundle, err := trust.SignIndex(ctx, signed, signer)
	if err != nil {
		return fmt.Errorf("sign %s: %w", target, err)
	}
	data, err := repository.FormatSignatures([][]byte{bundle})
	if err != nil {
		return err
	}
	if err := atomicfile.Write(target+repository.SignaturesSuffix, data, 0o644); err != nil {
		return err
	}
	o.env.Printf("signed by key %s until %s", signer.Public.Hint(), signed.Expires.Format(time.DateOnly))
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
