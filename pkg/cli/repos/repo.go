// Package repos has the commands that manage, index and search repositories of packages.
package repos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
)

// New returns the command repo.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repo",
		Short: "Manage repositories of packages, and make their index",
		Long: `Manage which repositories packages are installed from, and make the index of one. None of these commands needs a
cluster.

  kubectl kudo repo add ours https://packages.example.com/kudo
  kubectl kudo repo context ours
  kubectl kudo search
  kubectl kudo repo index ./packages --url https://packages.example.com/kudo`,
	}
	command.SetupGroup(cmd)
	cmd.AddCommand(newRepoAdd(env), newRepoRemove(env), newRepoList(env), newRepoContext(env), newRepoIndex(env), newMirror(env))
	return cmd
}

type repoAddOptions struct {
	env *command.Env

	username, caFile, key               string
	tokenHosts                          []string
	passwordStdin, tokenStdin, skipTest bool
}

func newRepoAdd(env *command.Env) *cobra.Command {
	o := &repoAddOptions{env: env}
	cmd := &cobra.Command{
		Use:   "add NAME URL",
		Short: "Add a repository",
		Long: `Add a repository by the URL of the folder that holds index.yaml. The index is read, to see that it can be. A repository may be a
place in a registry of OCI artifacts, too, oci://HOST/PATH, or a folder that stands for one, layout:DIR. Versions of a package are
the tags then, and there is no list of packages.

Credentials are read from stdin, so that they are neither in the history of the shell nor in the list of processes.
They are kept in a file that only you can read, and sent to the host of the URL only.

  kubectl kudo repo add ours https://packages.example.com/kudo --username me --password-stdin < password.txt
  kubectl kudo repo add registry oci://registry.example.com/kudo
  kubectl kudo repo add ours https://packages.example.com/kudo --key release.pub

With --key, no index is taken but one that the key has signed, that has not ended, and that is not older than the newest one that was seen.

Without credentials of its own, a registry gets those of docker login.`,
		Args: command.ExactArgs(2, "a name and a URL"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.username, "username", "", "user name, for basic authentication")
	f.BoolVar(&o.passwordStdin, "password-stdin", false, "read the password from stdin")
	f.BoolVar(&o.tokenStdin, "token-stdin", false, "read a bearer token from stdin")
	f.StringVar(&o.caFile, "ca-file", "", "PEM file of certificates to trust besides those of the system")
	f.StringVar(&o.key, "key", "", "file with the public key that must have signed the index, in PEM")
	f.StringSliceVar(&o.tokenHosts, "token-host", nil, "host that issues the tokens of a registry and gets its credentials; may be repeated")
	f.BoolVarP(&o.skipTest, "skip-check", "f", false, "do not read the index")
	cmd.MarkFlagsMutuallyExclusive("password-stdin", "token-stdin")
	return cmd
}

func (o *repoAddOptions) run(ctx context.Context, name, url string) error {
	home, err := o.env.RepositoryHome()
	if err != nil {
		return err
	}
	r, err := o.describe(name, url)
	if err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return command.UsageError("%w", err)
	}
	if !o.skipTest && !repository.IsReference(r.URL) { // a registry has nothing that could be read without the name of a package
		if err := checkRepository(ctx, o.env, home, r); err != nil {
			return err
		}
	}
	if err := home.Change(ctx, func(list *repository.Repositories) error { return list.Add(r) }); err != nil {
		return err
	}
	o.env.Printf("repository %s added", name)
	return nil
}

// describe returns the repository that the arguments and flags name, with absolute paths, and with the secret that stdin holds.
func (o *repoAddOptions) describe(name, url string) (repository.Repository, error) {
	r := repository.Repository{Name: name, URL: url, Username: o.username, TokenHosts: o.tokenHosts}
	if dir, is := strings.CutPrefix(url, "layout:"); is && dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return r, err
		}
		r.URL = "layout:" + filepath.ToSlash(dir)
	}
	if o.key != "" {
		key, err := command.ReadPublicKey("--key", o.key)
		if err != nil {
			return r, err
		}
		r.Key = string(key.PEM())
	}
	if o.caFile != "" {
		file, err := filepath.Abs(o.caFile)
		if err != nil {
			return r, err
		}
		r.CAFile = file
	}
	if !o.passwordStdin && !o.tokenStdin {
		return r, nil
	}
	secret, err := readSecret(o.env)
	if o.tokenStdin {
		r.Token = secret
	} else {
		r.Password = secret
	}
	return r, err
}

// checkRepository reads the index of a repository that is not there yet.
func checkRepository(ctx context.Context, env *command.Env, home repository.Home, r repository.Repository) error {
	source := repository.NewRemote(home, 0, env.Warnf)
	_, err := source.Index(ctx, r)
	if err != nil {
		err = fmt.Errorf("%w (--skip-check adds it all the same)", err)
	}
	return errors.Join(err, source.Close())
}

// maxSecret is how long a password or token may be, in bytes.
const maxSecret = 64 << 10

// readSecret reads the first line of stdin.
func readSecret(env *command.Env) (repository.Secret, error) {
	text, err := io.ReadAll(io.LimitReader(env.In, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("reading stdin: %w", err)
	}
	line, rest, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || strings.TrimSpace(rest) != "" || len(text) > maxSecret {
		return "", command.UsageError("stdin must hold the secret as one line, and nothing else")
	}
	return repository.Secret(line), nil
}

func newRepoRemove(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME…",
		Aliases: []string{"rm"},
		Short:   "Remove repositories, their credentials and what is kept of their indexes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.UsageError("%s takes the names of repositories", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := env.RepositoryHome()
			if err != nil {
				return err
			}
			left := ""
			err = home.Change(cmd.Context(), func(list *repository.Repositories) error {
				for _, name := range args {
					if err := list.Remove(name); err != nil {
						return err
					}
				}
				left = list.Context
				return nil
			})
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := home.Forget(name); err != nil {
					return err
				}
				env.Printf("repository %s removed", name)
			}
			if left == "" {
				env.Warnf("no repository is in use now: choose one by kubectl kudo repo context")
			}
			return nil
		},
	}
}

// listedRepository is a repository as it is printed: without credentials.
type listedRepository struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Context says that it is in use.
	Context        bool   `json:"context"`
	Authentication string `json:"authentication"`
	CAFile         string `json:"caFile,omitempty"`
}

func newRepoList(env *command.Env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List repositories; * marks the one in use",
		Args:  command.ExactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := command.CheckFormat(output); err != nil {
				return err
			}
			home, err := env.RepositoryHome()
			if err != nil {
				return err
			}
			list, err := home.Load()
			if err != nil {
				return err
			}
			return printRepositories(env, list, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	return cmd
}

func printRepositories(env *command.Env, list *repository.Repositories, output string) error {
	listed := []listedRepository{}
	rows := [][]string{{"NAME", "URL", "AUTHENTICATION"}}
	for _, r := range list.Repositories {
		kind := "none"
		switch {
		case r.Token != "":
			kind = "bearer"
		case r.Username != "":
			kind = "basic"
		}
		l := listedRepository{r.Name, r.Address(), r.Name == list.Context, kind, r.CAFile}
		listed = append(listed, l)
		mark := ""
		if l.Context {
			mark = "*"
		}
		rows = append(rows, []string{mark + l.Name, l.URL, l.Authentication})
	}
	if output != "" {
		return env.PrintValue(output, listed)
	}
	if len(listed) == 0 {
		env.Printf("%v", repository.ErrNone)
		return nil
	}
	return env.PrintTable(rows)
}

func newRepoContext(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "context NAME",
		Short: "Use a repository where no other is named",
		Args:  command.ExactArgs(1, "the name of a repository"),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := env.RepositoryHome()
			if err != nil {
				return err
			}
			err = home.Change(cmd.Context(), func(list *repository.Repositories) error {
				r, err := list.Get(args[0])
				list.Context = r.Name
				return err
			})
			if err == nil {
				env.Printf("repository %s is in use", args[0])
			}
			return err
		},
	}
}
