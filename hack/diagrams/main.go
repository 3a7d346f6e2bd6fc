// Command diagrams draws the pictures of the documentation from their texts in the language D2:
//
//	diagrams [-o FOLDER] FOLDER
//
// It is a module of its own, since no other part of kudo needs a library that draws.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"oss.terrastruct.com/d2/d2graph"
	"oss.terrastruct.com/d2/d2layouts/d2dagrelayout"
	"oss.terrastruct.com/d2/d2lib"
	"oss.terrastruct.com/d2/d2renderers/d2svg"
	"oss.terrastruct.com/d2/lib/log"
	"oss.terrastruct.com/d2/lib/textmeasure"
)

func main() {
	out := flag.String("o", "", "the `folder` that the pictures are written into (default that of the texts)")
	flag.Parse()
	dir := flag.Arg(0)
	if *out == "" {
		*out = dir
	}
	if err := run(context.Background(), dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "diagrams:", err)
		os.Exit(1)
	}
}

// run draws each text of a folder.
func run(ctx context.Context, dir, out string) error {
	texts, err := filepath.Glob(filepath.Join(dir, "*.d2"))
	if err != nil {
		return err
	}
	if len(texts) == 0 {
		return fmt.Errorf("no texts *.d2 in %q: name the folder that holds them", dir)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err == nil {
			text, err = draw(ctx, string(text))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		name := strings.TrimSuffix(filepath.Base(path), ".d2") + ".svg"
		errs = append(errs, os.WriteFile(filepath.Join(out, name), text, 0o644))
	}
	return errors.Join(errs...)
}

// draw returns the picture of a text as SVG. The same text gives the same bytes.
func draw(ctx context.Context, text string) ([]byte, error) {
	ruler, err := textmeasure.NewRuler()
	if err != nil {
		return nil, err
	}
	margin, theme := int64(16), int64(0)
	render := &d2svg.RenderOpts{Pad: &margin, ThemeID: &theme}
	ctx = log.With(ctx, slog.New(slog.DiscardHandler))
	diagram, _, err := d2lib.Compile(ctx, text, &d2lib.CompileOptions{
		Ruler:          ruler,
		LayoutResolver: func(string) (d2graph.LayoutGraph, error) { return d2dagrelayout.DefaultLayout, nil },
	}, render)
	if err != nil {
		return nil, err
	}
	return d2svg.Render(diagram, render)
}
