"""Export methods of a model: C, ONNX and JSON; predictions in files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from arboost.model.model import Model
from arboost.write import write_file

__all__ = ["ExportMethods"]


class ExportMethods(Model):
    """A model with exports for other programs, and with predictions of files in a file."""

    def to_c(
        self, path: str | os.PathLike[str] | None = None, *, name: str = "model"
    ) -> str | None:
        """Write the model as one C99 header that needs nothing but the standard library.

        Raw scores of the compiled code are those of `predict_raw` to the last bit. The comment at
        the head of the file explains its use, and how categories and missing values are passed. The
        rows of a model that was fitted with an offset end with it, one value for each raw score.

        Parameters
        ----------
        path : path or None
            None returns the source instead.
        name : str
            Prefix of the header's functions and macros. Characters that are not allowed in names of
            C become underscores.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1]], [0, 1]).model_
        >>> "void price_predict(const double *row, double *prediction);" in model.to_c(name="price")
        True
        """
        from arboost.formats.c_header import c_header

        text = c_header(self, name)
        if path is None:
            return text
        write_file(path, text.encode("ascii"))
        return None

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Write the model as ONNX; needs the package onnx (``pip install arboost[onnx]``).

        onnxruntime reaches the same leaf in every tree, but adds in its own order: predictions
        differ from those of `predict` and `predict_proba` by rounding only. A model without
        categories has one input "X" of doubles, shape (n_rows, n_features). With categories there
        is one input for each column, with the column's name, shape (n_rows, 1): strings for
        categories of strings, doubles for all others. Unknown levels and NaN are missing, and
        times are seconds. A model that was fitted with an offset has the input "offset", too, of
        shape (n_rows, n_outputs), which is added to the raw scores.

        The output of a regressor is "variable", those of a classifier are "label" and
        "probabilities"; with several targets "label_0", "probabilities_0", "label_1", ...

        Parameters
        ----------
        path : path or None
            None returns the ``onnx.ModelProto`` instead.
        """
        from arboost.formats.onnx_model import onnx_model

        model = onnx_model(self)
        if path is None:
            return model
        write_file(path, model.SerializeToString())
        return None

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Return the model as readable JSON, or write it to a file if a path is given.

        Trees are lists of nodes with the names of features, thresholds and levels. `from_json` and
        `load` read it and return the same model, bit for bit.

        Parameters
        ----------
        path : str or path-like, optional
            File to write instead; a failure leaves an existing file unchanged.

        Examples
        --------
        >>> import arboost, json
        >>> model = arboost.DecisionTreeRegressor().fit([[0], [1]], [5, 7]).model_
        >>> split, left, right = json.loads(model.to_json())["trees"][0]["nodes"]
        >>> split["feature"], split["at_most"], split["left"]
        (0, 0.5, 1)
        >>> left
        {'value': 5.0, 'cover': 1.0}
        """
        from arboost.formats.json_model import to_json

        text = to_json(self)
        if path is None:
            return text
        write_file(path, text.encode("ascii"))
        return None

    def predict_files(
        self,
        source: object,
        path: str | os.PathLike[str],
        *,
        columns_to_keep: Sequence[str] | None = None,
        method: str = "predict",
        offset: str | Sequence[str] | float | None = None,
        batch_rows: int = 131_072,
        n_jobs: int | None = None,
        escape_formulas: bool = False,
    ) -> int:
        """Write the predictions of rows that need not fit in memory; needs the package pyarrow.

        The values are those of `predict` on the whole table, in the order of the rows. The file
        gets its name when it is complete: an error leaves the file that was there before.

        Parameters
        ----------
        source : path, pattern, folder, list of them, dataset, query or iterable
            Rows to predict, as `Dataset.from_files` takes them; also a generator of tables. Of
            files, only the features and `columns_to_keep` are read.
        path : str or path-like
            File to write, of Parquet (.parquet), Arrow (.arrow, .feather), CSV (.csv, .tsv) or JSON
            lines (.jsonl), the latter two also with .gz or .zst.
        columns_to_keep : list of str, optional
            Columns to copy, before the predictions; categories become plain values.
        method : {"predict", "predict_proba", "predict_raw"}, default="predict"
            "predict" writes a column "prediction"; "predict_proba" writes "proba_<class>" for each
            class; "predict_raw" writes "raw". Several outputs have a number in the name:
            "prediction_0", "raw_0", "proba_0_<class>" and so on.
        offset : str, list of str, float or None, default=None
            Columns with the offset of the rows, or one number for all, for a model that was fitted
            with an offset; None for the columns that the fit named.
        batch_rows : int, default=131072
            Largest number of rows in memory at a time; two batches are.
        n_jobs : int or None
            Number of threads; predictions do not depend on it.
        escape_formulas : bool, default=False
            Put an apostrophe before texts and column names of a CSV or TSV file that begin with
            =, +, -, @, a tab or a carriage return, which a spreadsheet would run as formulas.

        Returns
        -------
        int
            Number of rows.

        Examples
        --------
        >>> import arboost, pyarrow.parquet, tempfile
        >>> model = arboost.GradientBoostingRegressor(n_estimators=50, learning_rate=0.5)
        >>> table = pyarrow.table({"id": [7, 8], "x": [0.0, 1.0]})
        >>> model = model.fit(table.select(["x"]), [0, 1]).model_
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pyarrow.parquet.write_table(table, f"{folder}/in.parquet")
        ...     out = f"{folder}/out.parquet"
        ...     model.predict_files(f"{folder}/in*.parquet", out, columns_to_keep=["id"])
        ...     print(pyarrow.parquet.read_table(out).to_pandas().round(3))
        2
           id  prediction
        0   7         0.0
        1   8         1.0
        """
        from arboost.model.predict_files import predict_to_file

        return predict_to_file(
            self,
            source,
            path,
            columns_to_keep=columns_to_keep,
            method=method,
            offset=offset,
            batch_rows=batch_rows,
            n_jobs=n_jobs,
            escape_formulas=escape_formulas,
        )
