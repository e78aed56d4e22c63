"""Pictures and tables of trees as methods of a Predictor.

Each method imports its implementation when it is called, so that loading and running a model stays
light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from arboost.model.model import Model

if TYPE_CHECKING:
    from arboost.pictures.summary import Summary
    from arboost.pictures.tree_pictures import TreePicture

__all__ = ["PictureMethods"]


class PictureMethods(Model):
    """A model with trees as text, pictures and tables, and a summary."""

    def tree_text(
        self,
        tree: int = 0,
        *,
        max_depth: int | None = 10,
        precision: int = 4,
        show_missing: bool = True,
    ) -> str:
        """Return a tree as indented text: one line per node with its condition, cover and value.

        The values of averaged trees are predictions, those of summed trees parts of the raw scores.

        Parameters
        ----------
        tree : int, default=0
        max_depth : int or None
            Depth of the deepest nodes shown; None for all.
        precision : int, default=4
            Significant digits of thresholds and values.
        show_missing : bool, default=True
            Whether to show the direction of missing values, which every split has.
        """
        from arboost.pictures.tree_pictures import tree_text

        return tree_text(
            self, tree, max_depth=max_depth, precision=precision, show_missing=show_missing
        )

    def tree_svg(
        self,
        tree: int = 0,
        *,
        max_depth: int | None = 4,
        precision: int = 4,
        show_missing: bool = True,
    ) -> TreePicture:
        """Return a tree as an SVG string, which notebooks render; parameters as in `tree_text`."""
        from arboost.pictures.tree_pictures import tree_svg

        return tree_svg(
            self, tree, max_depth=max_depth, precision=precision, show_missing=show_missing
        )

    def tree_dot(
        self,
        tree: int = 0,
        *,
        max_depth: int | None = None,
        precision: int = 4,
        show_missing: bool = True,
    ) -> str:
        """Return a tree in DOT, the language of Graphviz; parameters as in `tree_text`."""
        from arboost.pictures.tree_pictures import tree_dot

        return tree_dot(
            self, tree, max_depth=max_depth, precision=precision, show_missing=show_missing
        )

    def tree_table(self) -> dict[str, NDArray[Any]]:
        """Return the nodes of all trees as columns: ``pandas.DataFrame(model.tree_table())``.

        The columns are tree, node (0 is the root of its tree), depth, feature (name), threshold
        (values up to it go left; seconds for times) or levels (list of the levels that go left),
        missing ("left" or "right"), left, right (children), gain, cover, output (index of the raw
        score that the tree adds to) and value, or value_0, value_1 and so on for vector leaves. In
        columns of splits, leaves have None, NaN or -1.
        """
        from arboost.pictures.tree_table import tree_table

        return tree_table(self)

    def summary(self) -> Summary:
        """Return a summary of the model, for ``print`` and notebooks."""
        from arboost.pictures.summary import Summary

        return Summary(self)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
