package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/repository"
)

func (t *tool) repoCommand() *cobra.Command {
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
	group(cmd)
	cmd.AddCommand(t.repoAddCommand(), t.repoRemoveCommand(), t.repoListCommand(), t.repoContextCommand(), t.repoIndexCommand())
	return cmd
}

// kudoHome is where repositories and the cache are kept.
func (t *tool) kudoHome() (repository.Home, error) {
	if t.home != "" {
		return repository.Home{Dir: t.home}, nil
	}
	return repository.DefaultHome(os.Getenv, os.UserHomeDir)
}

// remote finds packages in repositories and at URLs. It must be closed.
func (t *tool) remote() (*repository.Remote, error) {
	home, err := t.kudoHome()
	if err != nil {
		return nil, err
	}
	return repository.NewRemote(home, 0, t.warn), nil
}

type repoAddOptions struct {
	username, caFile                    string
	passwordStdin, tokenStdin, skipTest bool
}

func (t *tool) repoAddCommand() *cobra.Command {
	o := &repoAddOptions{}
	cmd := &cobra.Command{
		Use:   "add NAME URL",
		Short: "Add a repository",
		Long: `Add a repository by the URL of the folder that holds index.yaml. The index is read, to see that it can be.

Credentials are read from stdin, so that they are neither in the history of the shell nor in the list of processes.
They are kept in a file that only you can read, and sent to the host of the URL only.

  kubectl kudo repo add ours https://packages.example.com/kudo --username me --password-stdin < password.txt`,
		Args: exactly(2, "a name and a URL"),
		RunE: func(cmd *cobra.Command, args []string) error { return t.repoAdd(cmd.Context(), args[0], args[1], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.username, "username", "", "user name, for basic authentication")
	f.BoolVar(&o.passwordStdin, "password-stdin", false, "read the password from stdin")
	f.BoolVar(&o.tokenStdin, "token-stdin", false, "read a bearer token from stdin")
	f.StringVar(&o.caFile, "ca-file", "", "PEM file of certificates to trust besides those of the system")
	f.BoolVarP(&o.skipTest, "skip-check", "f", false, "do not read the index")
	cmd.MarkFlagsMutuallyExclusive("password-stdin", "token-stdin")
	return cmd
}

func (t *tool) repoAdd(ctx context.Context, name, url string, o *repoAddOptions) error {
	home, err := t.kudoHome()
	if err != nil {
		return err
	}
	r := repository.Repository{Name: name, URL: url, Username: o.username}
	if o.caFile != "" {
		if r.CAFile, err = filepath.Abs(o.caFile); err != nil {
			return err
		}
	}
	if o.passwordStdin || o.tokenStdin {
		secret, err := t.secret()
		if err != nil {
			return err
		}
		if o.tokenStdin {
			r.Token = secret
		} else {
			r.Password = secret
		}
	}
	if err := r.Validate(); err != nil {
		return usage("%w", err)
	}
	if !o.skipTest {
		if err := t.checkRepository(ctx, home, r); err != nil {
			return err
		}
	}
	if err := home.Change(ctx, func(list *repository.Repositories) error { return list.Add(r) }); err != nil {
		return err
	}
	t.say("repository %s added", name)
	return nil
}

// checkRepository reads the index of a repository that is not there yet.
func (t *tool) checkRepository(ctx context.Context, home repository.Home, r repository.Repository) error {
	source := repository.NewRemote(home, 0, t.warn)
	_, err := source.Index(ctx, r)
	if err != nil {
		err = fmt.Errorf("%w (--skip-check adds it all the same)", err)
	}
	return errors.Join(err, source.Close())
}

// maxSecret is how long a password or token may be, in bytes.
const maxSecret = 64 << 10

// secret reads the first line of stdin.
func (t *tool) secret() (repository.Secret, error) {
	text, err := io.ReadAll(io.LimitReader(t.in, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("reading stdin: %w", err)
	}
	line, rest, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || strings.TrimSpace(rest) != "" || len(text) > maxSecret {
		return "", usage("stdin must hold the secret as one line, and nothing else")
	}
	return repository.Secret(line), nil
}

func (t *tool) repoRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME…",
		Aliases: []string{"rm"},
		Short:   "Remove repositories, their credentials and what is kept of their indexes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("%s takes the names of repositories", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := t.kudoHome()
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
				t.say("repository %s removed", name)
			}
			if left == "" {
				t.warn("no repository is in use now: choose one by kubectl kudo repo context")
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

func (t *tool) repoListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List repositories; * marks the one in use",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := checkFormat(output); err != nil {
				return err
			}
			home, err := t.kudoHome()
			if err != nil {
				return err
			}
			list, err := home.Load()
			if err != nil {
				return err
			}
			return t.printRepositories(list, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	return cmd
}

func (t *tool) printRepositories(list *repository.Repositories, output string) error {
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
		l := listedRepository{r.Name, r.URL, r.Name == list.Context, kind, r.CAFile}
		listed = append(listed, l)
		mark := ""
		if l.Context {
			mark = "*"
		}
		rows = append(rows, []string{mark + l.Name, l.URL, l.Authentication})
	}
	if output != "" {
		return t.printAny(output, listed)
	}
	return t.table(rows)
}

func (t *tool) repoContextCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "context NAME",
		Short: "Use a repository where no other is named",
		Args:  exactly(1, "the name of a repository"),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := t.kudoHome()
			if err != nil {
				return err
			}
			err = home.Change(cmd.Context(), func(list *repository.Repositories) error {
				r, err := list.Get(args[0])
				list.Context = r.Name
				return err
			})
			if err == nil {
				t.say("repository %s is in use", args[0])
			}
			return err
		},
	}
}
