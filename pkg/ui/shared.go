package ui

import (
	"net/http"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
)

// sharedList is what the page of shared objects shows.
type sharedList struct {
	Feed    feedStatus
	Rows    []sharedRow
	Picture *picture
	// Cut is how many objects the picture leaves out.
	Cut int
	// Beside is the namespace that other pages show; empty if they show all.
	Beside string
}

// sharedRow is an object with those who hold it.
type sharedRow struct {
	Kind, Name string
	State      state
	Message    string
	Holders    []holder
	// Uninstall says what becomes of the object when its last holder is uninstalled.
	Uninstall string
}

// holder is a holder of a shared object.
type holder struct {
	Name, Hold, Link string
}

func (s *Server) sharedPage(*http.Request) screen {
	return still(func() view {
		list := sharedList{Feed: s.installations.Status(), Beside: s.Namespace}
		var all []v1beta1.Installation
		for _, i := range objectsOf[*v1beta1.Installation](s.installations) {
			all = append(all, *i)
		}
		objects := share.Inventories(all)
		for _, o := range objects {
			list.Rows = append(list.Rows, s.sharedRow(o))
		}
		list.Picture, list.Cut = draw(list.Rows)
		return view{Title: "Shared", Nav: "shared", Fragments: []fragment{{ID: "shared", Template: "shared", Data: list}}}
	})
}

func (s *Server) sharedRow(o *share.SharedObject) sharedRow {
	row := sharedRow{Kind: o.Kind, Name: strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"), State: state{"as installed", "✓", "good", 1},
		Message: long(o.Message)}
	switch o.State {
	case string(v1beta1.HoldMismatch):
		row.State = state{"differs", "≠", "bad", 0}
	case string(v1beta1.HoldMissing):
		row.State = state{"missing", "∅", "bad", 0}
	}
	var made, foreign int
	for _, h := range o.Holds {
		switch h.State {
		case v1beta1.HoldCreated, v1beta1.HoldShared:
			made++
		case v1beta1.HoldExisting:
			foreign++
		}
		at := holder{Name: h.Subject.Kind + " " + h.Subject.Namespace + "/" + h.Subject.Name, Hold: string(h.State)}
		if s.Namespace == "" || s.Namespace == h.Subject.Namespace {
			page := map[string]string{"OperatorVersion": "/versions/", "Instance": "/instances/"}[h.Subject.Kind]
			if page != "" {
				at.Link = page + h.Subject.Namespace + "/" + h.Subject.Name
			}
		}
		row.Holders = append(row.Holders, at)
	}
	switch {
	case made > 0 && len(row.Holders) > 1:
		row.Uninstall = "stays as long as one of its holders does"
	case made > 0:
		row.Uninstall = "is deleted with its holder"
	case foreign > 0:
		row.Uninstall = "stays: kudo has not made it"
	default:
		row.Uninstall = "not known here: kubectl kudo uninstall-version --dry-run says"
	}
	return row
}

// The picture of shared objects: holders on the left, objects on the right, in the units of an SVG.
const (
	// maxDrawn is how many objects are drawn at most.
	maxDrawn   = 60
	lineHeight = 28
	boxHeight  = 22
	boxWidth   = 330
	leftX      = 5
	rightX     = 505
	// maxLabel bounds a label, in bytes.
	maxLabel = 46
)

// box is a rectangle with a label.
type box struct {
	X, Y, TextX, TextY int
	Label, Class       string
}

// edge is a line from a holder to an object.
type edge struct {
	X1, Y1, X2, Y2 int
	Class          string
}

// picture is a drawing of who holds what.
type picture struct {
	Width, Height, BoxWidth, BoxHeight int
	Boxes                              []box
	Edges                              []edge
}

// draw lays out who holds what; nil if there is nothing to draw. It returns how many objects it leaves out.
func draw(rows []sharedRow) (*picture, int) {
	if len(rows) == 0 {
		return nil, 0
	}
	shown := rows[:min(len(rows), maxDrawn)]
	p := &picture{Width: rightX + boxWidth + leftX, BoxWidth: boxWidth, BoxHeight: boxHeight}
	place := func(x, n int, label, class string) box {
		y := n*lineHeight + 3
		return box{X: x, Y: y, TextX: x + 8, TextY: y + 15, Label: text.Truncate(label, maxLabel), Class: class}
	}
	holders := map[string]int{}
	for n, row := range shown {
		for _, h := range row.Holders {
			at, known := holders[h.Name]
			if !known {
				at = len(holders)
				holders[h.Name] = at
				p.Boxes = append(p.Boxes, place(leftX, at, h.Name, "holder"))
			}
			p.Edges = append(p.Edges, edge{leftX + boxWidth, at*lineHeight + 3 + boxHeight/2, rightX, n*lineHeight + 3 + boxHeight/2,
				row.State.Class})
		}
		p.Boxes = append(p.Boxes, place(rightX, n, row.State.Sign+" "+row.Kind+" "+row.Name, row.State.Class))
	}
	p.Height = max(len(shown), len(holders))*lineHeight + 3
	return p, len(rows) - len(shown)
}
