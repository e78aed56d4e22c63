"""Trees and models to look at: text, SVG, DOT, tables, summary, plots."""
