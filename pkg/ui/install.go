package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/repository/incluster"
)

// installForm is what the page shows from which a user previews a new Instance of an OperatorVersion.
type installForm struct {
	// Problem is why there can be none; empty if there can.
	Problem string
	// Link is the address of the page of the OperatorVersion.
	Link string
	// Name is the name that the Instance gets if the user chooses no other.
	Name   string
	Fields []parameterField
	// Lacking are the required parameters that have no field, so that the command has to make the Instance.
	Lacking []string
	// Acts is set if what a preview shows can be done.
	Acts bool
	// Command makes an account, too, which the page does not.
	Command string
}

// installPlace is an Instance that is not there yet, of an OperatorVersion.
func (s *Server) installPlace(r *http.Request) place {
	key := keyOf(r)
	return place{address: versionLink(key), form: "install", title: "an Instance of " + key.String(), nav: "versions",
		read: func(ctx context.Context, form url.Values) (*target, error) {
			return s.readNewTarget(ctx, key, form.Get(fieldName), form.Get(fieldAccount))
		}}
}

// versionLink returns the address of the page of an OperatorVersion.
func versionLink(key client.ObjectKey) string { return "/versions/" + key.Namespace + "/" + key.Name }

// readNewTarget returns an Instance as it would be made of an OperatorVersion, as the API server has it now. An empty name is the default.
func (s *Server) readNewTarget(ctx context.Context, key client.ObjectKey, name, account string) (*target, error) {
	if s.Namespace != "" && s.Namespace != key.Namespace {
		return nil, errors.New(messageOtherNamespace(s.Namespace))
	}
	installed, err := incluster.List(ctx, s.client, key.Namespace)
	if err != nil {
		return nil, err
	}
	version := installed.Find(key.Name)
	if version == nil {
		return nil, fmt.Errorf("operatorversion %s does not exist or is being deleted: kubectl kudo get operatorversions -n %s lists those "+
			"that do", key, key.Namespace)
	}
	operator := version.Spec.Operator.Name
	t := &target{installed: installed, subject: subject{Version: version, Instance: pkginstall.NewInstance(pkginstall.InstanceOptions{
		Namespace: key.Namespace, Name: cmp.Or(name, operators.DefaultInstanceName(cmp.Or(operator, key.Name))), Operator: operator,
		OperatorVersion: key.Name, ServiceAccountName: account,
	})}}
	t.setHidden(true)
	t.setMask(nil)
	return t, nil
}

// installPage returns the page with the form of a new Instance. It is read once: a stream would take what a user is typing.
func (s *Server) installPage(r *http.Request) screen {
	ctx, cancel := context.WithTimeout(r.Context(), changeTime)
	defer cancel()
	p := s.installPlace(r)
	v := view{Title: "Make " + p.title, Nav: p.nav, Fixed: true}
	form := installForm{Link: p.address, Acts: s.AllowActions}
	t, err := p.target(ctx, nil)
	if err != nil {
		form.Problem, v.Status = long(err.Error()), statusOf(err)
	} else {
		form.Name, form.Fields = t.Instance.Name, t.fields()
		form.Command = act.Install{Instance: t.Instance, Version: t.Version}.Command() + " --create-service-account"
		for _, field := range form.Fields {
			if field.Required && field.Fixed != "" {
				form.Lacking = append(form.Lacking, field.Name)
			}
		}
		if len(form.Lacking) > 0 {
			form.Command += " -P FILE"
		}
	}
	v.Form = &fragment{Template: "install", Data: form}
	return still(func() view { return v })
}

// install returns the installation that a form asks for: a parameter is given if its value differs from the one that the form had.
func (t *target) install(form map[string][]string) (act.Action, error) {
	given, err := t.typedValues(form, nil)
	if err != nil {
		return nil, err
	}
	t.Instance.Spec.Parameters = given
	return act.Install{Instance: t.Instance, Version: t.Version, Installed: t.installed}, nil
}
