package ui

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/text"
)

const (
	// catalogTime bounds how long a page waits for a repository.
	catalogTime = 30 * time.Second
	// maxRemotes is how many pages read repositories at a time: an index may have some 100 MB.
	maxRemotes = 2
)

// errNoHome is the error of a Server without the folder of a user.
var errNoHome = errors.New("where kudo keeps repositories is not known: set --home or KUDO_HOME, and start kubectl kudo ui again")

// catalogQuery is what an address says of the catalog. Of the versions, empty ones are the highest.
type catalogQuery struct {
	Repository, Name            string
	OperatorVersion, AppVersion string
	page                        int
}

func readCatalogQuery(values url.Values) catalogQuery {
	short := func(name string) string { return text.Truncate(values.Get(name), repository.MaxNameBytes) }
	return catalogQuery{Repository: short("repository"), Name: short("name"), page: pageOf(values),
		OperatorVersion: short("operator-version"), AppVersion: short("app-version")}
}

// link returns the address of a page of the list of packages.
func (q catalogQuery) link(page int) string {
	return linkTo("/catalog", map[string]string{"repository": q.Repository, "name": q.Name}, page)
}

// packageLink returns the address of the page of a version of a package.
func packageLink(repository string, e repository.Entry) string {
	return linkTo("/catalog/package", map[string]string{"repository": repository, "name": e.Name, "operator-version": e.OperatorVersion,
		"app-version": e.AppVersion}, 1)
}

// catalogForm is the data of the form above the packages.
type catalogForm struct {
	catalogQuery
	Repositories []repositoryRow
}

// repositoryRow is a line of the list of repositories.
type repositoryRow struct {
	Name, Address string
	InUse         bool
}

// packageRow is the highest version of a package in a line of the catalog.
type packageRow struct {
	repository.Entry
	// Link is the address of its page.
	Link string
	// Problem is why its versions cannot be read; empty if they can.
	Problem string
}

// catalog is what the page of the catalog shows.
type catalog struct {
	catalogForm
	pager
	// Problem is why there are no packages; empty if there may be some.
	Problem string
	// NeedsName is set if the repository is a registry and no package is named.
	NeedsName bool
	Rows      []packageRow
}

// catalogPage returns the page of the packages of a repository. It is read once, from the disk of the user and the repository.
func (s *Server) catalogPage(r *http.Request) screen {
	out := catalog{catalogForm: catalogForm{catalogQuery: readCatalogQuery(r.URL.Query())}}
	v := view{Title: "Catalog", Nav: "catalog", Fixed: true}
	err := s.remotes.use(r.Context(), func(ctx context.Context, from *repository.Remote) error { return out.read(ctx, from) })
	if err != nil && !errors.Is(err, repository.ErrNone) {
		out.Problem, v.Status = long(err.Error()), statusOfRemote(err)
	}
	v.Form = &fragment{Template: "catalog", Data: out}
	return still(func() view { return v })
}

// The errors of repositories that cannot be read at the moment.
var (
	errRemoteLate = errors.New("the repository did not answer in time: try again later")
	errRemoteBusy = errors.New("other pages read repositories at the moment: try again later")
)

// statusOfRemote returns the status of a page that a repository cannot fill: the repository has failed, or has not what was asked for.
func statusOfRemote(err error) int {
	var failed *repository.FetchError
	switch {
	case errors.Is(err, errRemoteBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, errRemoteLate):
		return http.StatusGatewayTimeout
	case errors.As(err, &failed):
		return http.StatusBadGateway
	}
	return http.StatusNotFound
}

// remotes are the repositories of a user.
type remotes struct {
	home repository.Home
	// agent names the program to repositories.
	agent string
	// limit bounds how long a page waits for them.
	limit time.Duration
	// reads has a value for each page that reads them.
	reads chan struct{}
}

// use calls a function with the repositories. What they do not answer in time is an error.
func (m *remotes) use(ctx context.Context, read func(context.Context, *repository.Remote) error) error {
	if m.home.Dir == "" {
		return errNoHome
	}
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	select {
	case m.reads <- struct{}{}:
		defer func() { <-m.reads }()
	case <-ctx.Done():
		return errRemoteBusy
	}
	from := repository.NewRemote(m.home, m.limit, nil)
	from.Registry = registry.Options{UserAgent: m.agent}
	err := errors.Join(read(ctx, from), from.Close())
	if err != nil && ctx.Err() != nil {
		return errRemoteLate
	}
	return err
}

// read reads the packages of the repository that the query names.
func (c *catalog) read(ctx context.Context, from *repository.Remote) error {
	list, err := from.Repositories()
	if err != nil {
		return err
	}
	for _, r := range list.Repositories {
		c.Repositories = append(c.Repositories, repositoryRow{Name: r.Name, Address: r.Address(), InUse: r.Name == list.Context})
	}
	in, err := list.Get(c.Repository)
	if err != nil {
		return err
	}
	c.Repository = in.Name
	if c.NeedsName = in.IsRegistry() && c.Name == ""; c.NeedsName {
		return nil
	}
	names, err := from.Names(ctx, in, c.Name)
	if err != nil {
		return err
	}
	c.pager = newPager(len(names), c.page, c.link)
	for _, name := range names[c.first:c.To] {
		versions, err := from.Versions(ctx, in, name)
		switch {
		case err != nil && in.IsRegistry():
			return err
		case err != nil: // the other packages are listed all the same
			c.Rows = append(c.Rows, packageRow{Entry: repository.Entry{Name: name}, Problem: long(err.Error())})
		case len(versions) > 0:
			c.Rows = append(c.Rows, packageRow{Entry: versions[0], Link: packageLink(in.Name, versions[0])})
		case !in.IsRegistry():
			c.Rows = append(c.Rows, packageRow{Entry: repository.Entry{Name: name}, Problem: "All its versions were removed."})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
