"""Settings of Sphinx for the site."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

project = "arboost"
version = release = installed("arboost")
project_copyright = "the authors of arboost"
extensions = ["myst_parser", "docs_site.mathml", "docs_site.name_links"]
exclude_patterns = ["files"]
nitpicky = True
highlight_language = "text"
smartquotes = False
toc_object_entries_show_parents = "hide"
add_module_names = False
python_display_short_literal_types = True
python_maximum_signature_line_length = 104

myst_enable_extensions = ["alert", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "github"
myst_dmath_double_inline = True
myst_update_mathjax = False

html_theme = "furo"
html_title = "arboost"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False  # the reference lists all names, and the search finds them
html_show_search_summary = False  # it would fetch pages, which browsers refuse for files
html_search_scorer = str(HERE / "search_scorer.js")
html_permalinks_icon = "#"
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#1f6f54",
        "color-brand-content": "#1a6b8f",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6fd3ac",
        "color-brand-content": "#7cc4e4",
    },
}
