"""Estimators of scikit-learn's kind as learners of AdaBoost: clones, or decision trees.

The learners get X as the user gave it, without columns and bins of the engine. Decision trees of
arboost are grown by one grower: each is the tree that a clone of the estimator would grow from
the same weights, seed and bins. Clones would bin the table anew in every round, by the weights of
that round; the bins here are those of the first round, as they are for `TreeLearners`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from arboost.backend import checked_threads, core, lazy_property, threads
from arboost.data.feature_names import split_row_columns
from arboost.data.schema import Schema
from arboost.data.target import Task
from arboost.data.target_encoding import features_to_encode
from arboost.errors import InputTypeError, ParameterError, listing
from arboost.estimators import forest_growth, member_fits
from arboost.estimators.adaboost import rounds as adaboost_rounds
from arboost.estimators.adaboost.rounds import AdaBoostRecipe, Learners
from arboost.estimators.adaboost.schemes import ClassScheme, Scheme, combine_columns, make_scheme
from arboost.estimators.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from arboost.estimators.estimator import read_rows
from arboost.estimators.forest_target import ForestTarget
from arboost.losses.base import Floats, Target
from arboost.losses.links import LINKS, Probabilities, predictions, probabilities
from arboost.losses.metrics import Metric, find_metrics
from arboost.models.model import checked_rounds
from arboost.models.prediction import read_table, tree_scores
from arboost.models.predictor import Predictor
from arboost.params.records import BinParams
from arboost.training import fit, inputs, loop, sets
from arboost.trees.grower import grown_forest, make_grower

EstimatorRows = inputs.Rows[member_fits.MemberTable]

_TWO_CLASSES = 2
_DECISION_TREES = (DecisionTreeClassifier, DecisionTreeRegressor)


class EstimatorStrategy(adaboost_rounds.LearnerStrategy[member_fits.MemberTable]):
    """Clones of an estimator as learners.

    Parameters
    ----------
    estimator : estimator
        Its clones are fitted, and the estimator itself is not.
    previous : estimator, optional
        Fitted AdaBoost estimator whose training is continued.
    checkpoint : object
        Refused unless None, before any table is read.
    """

    def __init__(self, estimator: Any, previous: Any = None, checkpoint: object = None) -> None:
        self._started = time.monotonic()  # max_time includes the reading of the tables
        if checkpoint is not None:
            raise InputTypeError(
                f"checkpoint={checkpoint!r} is not allowed with estimator="
                f"{type(estimator).__name__}: a checkpoint holds trees of the engine, and these "
                "learners are Python objects. Leave out checkpoint; init_model or warm_start "
                "continue a fitted estimator."
            )
        self._estimator = estimator
        self._old: EstimatorModel | None = None if previous is None else previous.model_
        if self._old is not None and not isinstance(self._old, EstimatorModel):
            raise ValueError(
                "the learners that are kept are trees of the engine, but this fit has an "
                "estimator, and all learners of a model must be of one kind. Use estimator=None, "
                "or train anew."
            )

    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[EstimatorRows, Task]:
        """The training rows, checked, and their task."""
        old = self._old
        X, weight, row_columns = split_row_columns(X, weight, groups)
        table, y = member_fits.training_table(X, y, None if old is None else old.schema)
        if row_columns:
            table = replace(table, schema=replace(table.schema, row_columns=row_columns))
        if table.n_rows == 0:  # without a schema, member_table says so itself
            raise ValueError("X has no rows. Pass at least one row to train on.")
        rows = inputs.table_rows(table, y, weight)
        return rows, Task.of(kind, rows.y, None if old is None else old.classes)

    def read_validation(self, arguments: sets.EvaluationArguments, schema: Schema) -> EstimatorRows:
        """The rows of an evaluation set, checked."""
        return arguments.rows(lambda X: member_fits.member_table(X, schema))

    def run(self, job: fit.FitJob[member_fits.MemberTable]) -> loop.FitResult:
        """Train, without bins, search for the number of rounds and checkpoint."""
        settings, train = job.settings, self._scored(job.train)
        evaluations = tuple(map(self._scored, job.validation))
        if job.splits:
            train, held_out = job.splitter.divide()
            evaluations = (*evaluations, held_out)
        metrics: tuple[Metric, ...] = ()
        if evaluations:
            metrics = find_metrics(settings.stopping.eval_metric, job.loss, settings.n_threads)
        rounds = job.start(train, evaluations, n_threads=settings.n_threads, seed=settings.seed)
        options = fit.LoopOptions(job.n_rounds, settings.stopping, job.callbacks, self._started)
        (fitted,), monitor, _ = fit.train_with_monitor([rounds], options, metrics)
        covers = np.full(len(fitted.forest), total_weight(train.target))
        fitted = replace(fitted, round_stats={**fitted.round_stats, "cover": covers})
        return loop.fit_result(fitted, monitor, train, n_before=self._n_before)

    def model(
        self, result: loop.FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> EstimatorModel:
        """The fitted model; the members of a continued model come first."""
        scheme = make_scheme(recorded, task.n_classes)
        fitted, none = result.fitted, np.empty(0)
        model = EstimatorModel(
            members=fitted.forest if fitted.round_stats else (),  # none for a single class
            weights=fitted.round_stats.get("weight", none),
            covers=fitted.round_stats.get("cover", none),
            votes=MemberVotes(scheme, task.classes),
            schema=schema,
            link=fitted.link,
            params=recorded,
            combine=scheme.combine,
            provenance=result.provenance,
        )
        return model if self._old is None else model.after(self._old)

    def _scored(self, rows: EstimatorRows) -> EstimatorRows:
        """The rows with the scores of the old model; its predictions by member for R2."""
        old, X = self._old, rows.source.X
        if old is None:
            return rows
        return rows.started(old.predict_raw(X) if old.combine == "sum" else old.columns(X))

    def start(
        self,
        recipe: AdaBoostRecipe,
        task: Task,
        data: EstimatorRows,
        evaluations: Sequence[EstimatorRows] = (),
        **options: int,
    ) -> adaboost_rounds.AdaBoostRounds:
        """The rounds of a fit of clones, or of the decision trees that they would be."""
        votes = MemberVotes(recipe.scheme, task.classes)
        check_learner(self._estimator, votes, resample=recipe.resample)
        learners: Learners | None = None
        if not recipe.resample:
            learners = decision_tree_learners(self._estimator, data, evaluations, votes, **options)
        if learners is None:
            seed = options["seed"]
            learners = EstimatorLearners(self._estimator, data, evaluations, votes, seed=seed)
        return adaboost_rounds.make_rounds(
            recipe,
            learners,
            data,
            evaluations,
            first_round=self._n_before,
            start_weights=None if self._old is None else self._old.weights,
            **options,
        )

    @property
    def _n_before(self) -> int:
        """Number of learners of the continued model."""
        return 0 if self._old is None else self._old.n_rounds


# ---- votes ----


@dataclass(frozen=True)
class MemberVotes:
    """Conversion of the predictions of a member to votes.

    Attributes
    ----------
    scheme : ClassScheme or R2Scheme
    classes : array of shape (n_classes,), or None for regression
        Labels, sorted; members are fitted to labels, not to class codes.
    """

    scheme: Scheme
    classes: NDArray[Any] | None = None

    @property
    def needs_probabilities(self) -> bool:
        """Whether votes come from class probabilities."""
        return isinstance(self.scheme, ClassScheme) and self.scheme.algorithm != "discrete"

    def from_member(self, member: Any, X: Any, cover: float) -> Floats:
        """The votes of a member before its weight, or its predictions for regression.

        Parameters
        ----------
        member : fitted estimator
        X : table of shape (n_rows, ...)
        cover : float
            Weight of all training rows of the member.

        Returns
        -------
        float64 array of shape (n_rows, n_outputs)
        """
        if not isinstance(self.scheme, ClassScheme):
            return _finite_numbers(member, X)
        assert self.classes is not None
        if self.needs_probabilities:
            outputs = member_fits.member_probabilities(
                member, X, self.classes, 'algorithm="discrete"'
            )
        else:
            outputs = member_fits.member_one_hot(member, X, self.classes)
        return self._from_classes(outputs, cover)

    def from_raw(self, raw: Floats, cover: float) -> Floats:
        """The votes of a decision tree of arboost, from its raw scores.

        The scores are (n_rows, n_outputs) as `ForestTarget` has them; the other argument and the
        result are those of `from_member`.
        """
        if not isinstance(self.scheme, ClassScheme):
            return raw
        assert self.classes is not None
        if not self.needs_probabilities:
            return self.scheme.unit_votes(raw, np.full(len(raw), cover))
        link = "share_of_two" if len(self.classes) == _TWO_CLASSES else "shares"
        return self._from_classes(LINKS[link](raw), cover)

    def _from_classes(self, outputs: Floats, cover: float) -> Floats:
        """The votes of class probabilities, or of one-hot classes."""
        if outputs.shape[1] == _TWO_CLASSES:
            outputs = outputs[:, 1:] - outputs[:, :1]
        return self.scheme.unit_votes(outputs, np.full(len(outputs), cover))


def _finite_numbers(member: Any, X: Any) -> Floats:
    predicted = member_fits.member_values(member, X)
    if not np.isfinite(predicted).all():
        raise ValueError(
            f"{type(member).__name__} predicts {predicted[~np.isfinite(predicted)][0]} for some "
            "rows, but AdaBoost.R2 needs finite numbers. Use another learner, or look at X and y."
        )
    return predicted


# ---- clones ----


class EstimatorLearners(Learners):
    """Clones of an estimator, each fitted with the current row weights.

    Parameters
    ----------
    estimator : estimator
        Its clones are fitted, and the estimator itself is not.
    data : Rows of a MemberTable
        Training rows.
    evaluations : sequence of Rows
    member_votes : MemberVotes
    seed : int
        Every parameter of a clone named ``random_state``, nested ones too, is set from this seed
        and the number of the clone.
    """

    def __init__(
        self,
        estimator: Any,
        data: inputs.Rows[member_fits.MemberTable],
        evaluations: Sequence[inputs.Rows[member_fits.MemberTable]],
        member_votes: MemberVotes,
        *,
        seed: int,
    ) -> None:
        self.n_rows = len(data.target.y)
        self._estimator = estimator
        self._X = training_input(data)
        self._evaluations = tuple(map(training_input, evaluations))
        self._member_votes = member_votes
        self._seed = seed
        y, classes = data.target.y, member_votes.classes
        self._y = y if classes is None else classes[y.astype(np.intp)]
        self._weight_name = member_fits.weight_name(estimator)
        # The fit of a learner with penalties depends on the scale of the weights: the first
        # learner must see exactly the weights that the user gave.
        weight = data.target.weight
        self._scale = 1.0 if weight is None else float(weight.mean())
        self._cover = total_weight(data.target)
        self._last: Any = None
        self._kept: list[tuple[Any, float]] = []

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Fit one more clone, on all rows with their weights, or on the drawn rows."""
        self._last = clone(self._estimator)
        member_fits.set_random_states(self._last, self._seed, number)
        if sample is not None:
            self._learn_drawn(sample)
        elif weight is None:
            self._last.fit(self._X, self._y)
        else:
            # A new array: weights change from round to round, and a learner may keep its array.
            weights = {str(self._weight_name): weight * self._scale}
            self._last.fit(self._X, self._y, **weights)

    def votes(self, evaluation: int | None = None) -> Floats:
        """The votes of the last clone for the training rows, or for an evaluation set."""
        X = self._X if evaluation is None else self._evaluations[evaluation]
        return self._member_votes.from_member(self._last, X, self._cover)

    def keep(self, factor: float) -> None:
        """Keep the last clone, its votes multiplied by a factor."""
        self._kept.append((self._last, factor))

    def drop(self) -> None:
        """Drop the last clone."""
        self._last = None

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """The votes of a kept clone, times its factor, for some training rows."""
        member, factor = self._kept[index]
        return factor * self._member_votes.from_member(
            member, member_fits.take_rows(self._X, rows), self._cover
        )

    def fitted(self, n_learners: int) -> tuple[Any, ...]:
        """The first kept clones."""
        return tuple(member for member, _ in self._kept[:n_learners])

    def _learn_drawn(self, sample: core.Sample) -> None:
        """Fit the last clone on drawn rows, each repeated by its count."""
        rows, counts = sample.positions().astype(np.intp), sample.weights().astype(np.intp)
        if len(counts):  # empty where each row was drawn once
            rows = np.repeat(rows, counts)
        y = self._y[rows]
        if self._member_votes.classes is not None and (y == y[0]).all():
            # Trees learn a constant from rows of one class; many other classifiers refuse them.
            self._last = DummyClassifier(strategy="most_frequent")
        self._last.fit(member_fits.take_rows(self._X, rows), y)


def training_input(rows: inputs.Rows[member_fits.MemberTable]) -> Any:
    """X of the rows, as estimators read it."""
    return rows.source.X if rows.index is None else member_fits.take_rows(rows.source.X, rows.index)


def total_weight(target: Target) -> float:
    """The weight of all training rows, in the units of the user's weights."""
    n_rows = float(len(target.y))
    return n_rows if target.weight is None else n_rows * float(target.weight.mean())


def check_learner(estimator: Any, member_votes: MemberVotes, *, resample: bool) -> None:
    """Raise ValueError where an estimator lacks class probabilities or weights that a fit needs."""
    name = type(estimator).__name__
    scheme = member_votes.scheme
    if member_votes.needs_probabilities and not hasattr(estimator, "predict_proba"):
        assert isinstance(scheme, ClassScheme)
        raise ParameterError(
            f'algorithm="{scheme.algorithm}" needs class probabilities, but {name} has no '
            'predict_proba. Use algorithm="discrete", or a learner with predict_proba.',
            parameter="algorithm",
        )
    if not resample and member_fits.weight_name(estimator) is None:
        raise ValueError(
            f"{name} doesn't support sample_weight: its fit has no such argument, but boosting by "
            "weights needs it. Use resample=True, which draws rows by their weights instead."
        )


# ---- decision trees of arboost ----


def decision_tree_learners(
    estimator: Any,
    data: EstimatorRows,
    evaluations: Sequence[EstimatorRows],
    member_votes: MemberVotes,
    *,
    n_threads: int,
    seed: int,
) -> DecisionTreeLearners | None:
    """The learners for a decision tree of arboost; None where clones are needed.

    Clones are for subclasses, class weights and pruning, and for tables whose target encodings
    depend on the weights.
    """
    if type(estimator) not in _DECISION_TREES:
        return None
    params = clone(estimator)._checked_params()  # which may draw from a random state
    if params.get("class_weight") is not None or params["ccp_alpha"] > 0.0:
        return None
    classes, target = member_votes.classes, data.target
    y = target.y if classes is None else classes[target.y.astype(np.intp)]
    rows = read_rows((training_input(data), y, target.weight), params)
    tree_target = ForestTarget.read(estimator._KIND, rows.y, params["criterion"])
    tree_classes = tree_target.tasks[0].classes
    has_all = classes is None or (tree_classes is not None and len(tree_classes) == len(classes))
    if features_to_encode(rows.schema) or not has_all:
        return None
    return DecisionTreeLearners(
        estimator,
        rows,
        tree_target,
        tuple(map(training_input, evaluations)),
        member_votes,
        params=params,
        n_threads=n_threads,
        seed=seed,
    )


class DecisionTreeLearners(Learners):
    """Decision trees that are grown on one binned table.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or DecisionTreeRegressor
        Its clones would have grown the same trees.
    rows : Rows
        Training rows as the engine reads them.
    target : ForestTarget
        Target of these rows.
    evaluations : sequence of tables
        As estimators read them.
    member_votes : MemberVotes
    params : mapping
        Checked parameters of the estimator.
    n_threads : int
    seed : int
        Source of the random states of the trees, with their numbers.
    """

    def __init__(
        self,
        estimator: Any,
        rows: inputs.EngineRows,
        target: ForestTarget,
        evaluations: Sequence[Any],
        member_votes: MemberVotes,
        *,
        params: Mapping[str, Any],
        n_threads: int,
        seed: int,
    ) -> None:
        self.n_rows = len(rows.y)
        self._estimator = estimator
        self._rows = rows
        self._target = target
        self._evaluations = evaluations
        self._member_votes = member_votes
        self._n_threads = n_threads
        self._seed = seed
        weight = rows.weight
        self._scale = 1.0 if weight is None else float(weight.mean())
        self._cover = self.n_rows * self._scale
        tree = forest_growth.tree_params(params, rows.schema, target, self._cover)
        self._binned = sets.bin_rows(rows, BinParams.of(params), n_threads)
        self._grower = make_grower(self._binned, tree, target.n_outputs)
        self._gradients = core.Gradients(self.n_rows, target.n_outputs, by_row=target.n_outputs > 1)
        self._set_values = None
        if not target.is_exact and not any(tree.monotone):
            by_medians = tree.criterion == "absolute_error"
            self._set_values = self._grower.set_medians if by_medians else self._grower.set_means
        self._state = 0  # random state of the last tree
        self._states: list[int] = []  # of the kept trees

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Grow one more tree, on all rows with their weights."""
        assert weight is not None
        assert sample is None
        weight = weight if self._scale == 1.0 else weight * self._scale
        target = self._target
        core.apply_loss(target.kernel, target.y, weight, None, self._gradients, self._n_threads)
        (self._state,) = member_fits.random_states(self._seed, number, 1)
        self._grower.grow(
            self._gradients,
            0,
            seed=self._state,
            tree=0,
            rate=1.0,
            n_threads=self._n_threads,
        )
        if self._set_values is not None:
            self._set_values(core.LeafTarget(target.y[:, np.newaxis], weight))

    def votes(self, evaluation: int | None = None) -> Floats:
        """The votes of the last tree for the training rows, or for an evaluation set."""
        if evaluation is not None:
            last = self._members(self._grower.n_trees - 1, [*self._states, self._state])
            covers = np.array([self._cover])
            return next(last.votes(self._evaluations[evaluation], self._member_votes, covers))
        values = self._grower.last_tree()["value"]
        units = self._member_votes.from_raw(values + self._target.middle, self._cover)
        votes = np.zeros((self.n_rows, units.shape[1]))
        self._grower.set_values(units)
        self._grower.add_leaves(votes, 0, self._n_threads)
        self._grower.set_values(values)  # those of the member
        return votes

    def keep(self, factor: float) -> None:
        """Keep the last tree; the model multiplies its votes by the factor."""
        self._states.append(self._state)

    def drop(self) -> None:
        """Drop the last tree."""
        self._grower.drop_last()

    def fitted(self, n_learners: int) -> TreeMembers:
        """The first kept trees."""
        return self._members(0, self._states[:n_learners])

    def _members(self, first: int, states: Sequence[int]) -> TreeMembers:
        """The trees from the first one on, with the random states of all."""
        order = np.arange(first, len(states))
        forest = grown_forest([self._grower], self._binned, [0], order=order)
        params = {"max_bins": self._binned.max_bins}
        forest = replace(forest, value=forest.value + self._target.middle)
        model = forest_growth.forest_model(forest, self._rows, self._target, params)
        return TreeMembers(clone(self._estimator), tuple(states[first:]), model)


@dataclass(frozen=True, eq=False, repr=False)
class TreeMembers(Sequence[Any]):
    """Fitted decision trees, made of the trees of one forest on first access.

    Attributes
    ----------
    estimator : DecisionTreeClassifier or DecisionTreeRegressor
        Unfitted.
    states : tuple of int
        The random state of each tree.
    model : Predictor
        All trees; never used as one model.
    """

    estimator: Any
    states: tuple[int, ...]
    model: Predictor

    def votes(self, X: Any, member_votes: MemberVotes, covers: Floats) -> Iterator[Floats]:
        """Yield the votes of each tree before its weight, as `MemberVotes.from_member` does.

        `covers` has the weight of the training rows of each tree.
        """
        n_threads = threads(self.estimator.n_jobs)
        table = read_table(self.model, X)
        for tree, cover in enumerate(covers):
            scores = tree_scores(self.model, table, tree, n_threads=n_threads)
            yield member_votes.from_raw(scores, cover)

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and index.start is None and index.step is None:
            n_trees = len(range(len(self))[index])
            model = self.model.truncated(n_trees)
            return TreeMembers(self.estimator, self.states[:n_trees], model)
        return self._all[index]

    @lazy_property
    def _all(self) -> tuple[Any, ...]:
        return tuple(self._member(i) for i in range(len(self)))

    def _member(self, index: int) -> Any:
        member = clone(self.estimator)
        member.random_state = self.states[index]
        params = forest_growth.with_resolved_bins(
            member._checked_params(), self.model.params["max_bins"]
        )
        forest, recorded = self.model.forest.single_tree(index), member._recorded_params(params)
        model = replace(self.model, forest=forest, params=recorded)
        forest_growth.set_tree_attributes(member, model, params["max_features"])
        return member


# ---- the fitted model ----


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EstimatorModel:
    """Fitted ensemble of estimators.

    `n_jobs` is for the combination of the votes; members use their own. The model pickles where its
    members do; `arboost.load` reads models of engine trees only.

    Attributes
    ----------
    members : tuple of estimators, or TreeMembers
    weights : float64 array of shape (n_members,)
        Weights of the members' votes.
    covers : float64 array of shape (n_members,)
        Weight of the training rows of each member.
    votes : MemberVotes
    schema : Schema
        Names and number of the columns.
    link : str
        Name of a link in `arboost.losses.links`.
    params : dict
        Parameters of the fit that can change the model.
    combine : {"sum", "median", "mean"}
        Whether raw scores are the sum of weighted votes, or the weighted median or mean of
        predictions.
    provenance : dict
        Metadata of the fit, as `arboost.models.model.Model` has it.
    metadata : dict
        Values of the user, by name; pickle keeps them.
    """

    members: Sequence[Any]
    weights: Floats
    covers: Floats
    votes: MemberVotes
    schema: Schema
    link: str
    params: dict[str, Any]
    combine: str = "sum"
    provenance: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    targets: tuple[int, ...] = ()  # AdaBoost has one target

    @property
    def classes(self) -> NDArray[Any] | None:
        """Labels in the order of the probabilities; None for regression."""
        return self.votes.classes

    @property
    def kind(self) -> str:
        """Task of the model: "classifier" or "regressor"."""
        return "regressor" if self.classes is None else "classifier"

    @property
    def n_outputs(self) -> int:
        """Number of raw scores of a row."""
        n_classes = 1 if self.classes is None else len(self.classes)
        return n_classes if n_classes > _TWO_CLASSES else 1

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return len(self.members)

    def predict(self, X: object, *, n_jobs: int | None = None) -> NDArray[Any]:
        """The predicted values or labels, shape (n_rows,)."""
        return predictions(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_proba(self, X: object, *, n_jobs: int | None = None) -> Probabilities:
        """The class probabilities, shape (n_rows, n_classes)."""
        return probabilities(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_raw(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """The raw scores, before the link, shape (n_rows, n_outputs)."""
        n_threads = checked_threads(n_jobs)
        table = member_fits.member_table(X, self.schema).X
        if self.combine != "sum":
            return self._combined(self.columns(table), n_threads)
        scores = np.zeros((table.shape[0], self.n_outputs))
        for votes in self._weighted_votes(table):
            scores += votes
        return scores

    def staged_raw(self, X: object, *, n_jobs: int | None = None) -> Iterator[Floats]:
        """Yield the raw scores after each round, in a new array each time."""
        n_threads = checked_threads(n_jobs)
        table = member_fits.member_table(X, self.schema).X
        if self.combine != "sum":
            columns = self.columns(table)
            for rounds in range(1, self.n_rounds + 1):
                yield self._combined(columns[:, :rounds], n_threads)
            return
        scores = np.zeros((table.shape[0], self.n_outputs))
        for votes in self._weighted_votes(table):
            scores += votes
            yield scores.copy()

    def staged_predict(self, X: object, *, n_jobs: int | None = None) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each round."""
        return (predictions(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def staged_predict_proba(
        self, X: object, *, n_jobs: int | None = None
    ) -> Iterator[Probabilities]:
        """Yield the result of `predict_proba` after each round."""
        return (probabilities(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def columns(self, table: Any) -> Floats:
        """The predictions of each member of a median, shape (n_rows, n_members).

        `table` is X of a `MemberTable`.
        """
        values = np.empty((table.shape[0], self.n_rounds))
        for i, votes in enumerate(self._votes(table)):
            values[:, i] = votes[:, 0]
        return values

    def truncated(self, rounds: int) -> Self:
        """The model of the first rounds."""
        rounds = checked_rounds(rounds, self.n_rounds)
        return replace(
            self,
            members=self.members[:rounds],
            weights=self.weights[:rounds],
            covers=self.covers[:rounds],
        )

    def after(self, old: EstimatorModel) -> Self:
        """The members of the model whose training is continued, and then these."""
        return replace(
            self,
            members=(*old.members, *self.members),
            weights=np.append(old.weights, self.weights),
            covers=np.append(old.covers, self.covers),
        )

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raise TypeError: a model file holds trees, and the members are Python objects."""
        raise InputTypeError(
            f"{os.fspath(path)!r} was not written: model files hold trees of the engine, but the "
            f"learners of this model are Python objects ({self._member_names()}). Use joblib.dump, "
            "or train with estimator=None."
        )

    def verify_monotone(self, features: object = None, *, n_jobs: int | None = None) -> NoReturn:
        """Raise TypeError: proofs need the splits of engine trees."""
        raise InputTypeError(
            "verify_monotone reads trees of the engine, but the learners of this model are Python "
            f"objects ({self._member_names()}). Train with estimator=None."
        )

    def __repr__(self) -> str:
        columns = self.schema.n_features
        plural = "" if columns == 1 else "s"
        return (
            f"EstimatorModel({self.kind}, {columns} feature{plural}, "
            f"{self.n_rounds} x {self._member_names()})"
        )

    def _weighted_votes(self, table: Any) -> Iterator[Floats]:
        for weight, votes in zip(self.weights, self._votes(table), strict=True):
            yield weight * votes

    def _votes(self, table: Any) -> Iterator[Floats]:
        """Yield the votes of each member before its weight."""
        if hasattr(self.members, "votes"):  # decision trees, which read a table only once
            yield from self.members.votes(table, self.votes, self.covers)
            return
        for member, cover in zip(self.members, self.covers, strict=True):
            yield self.votes.from_member(member, table, cover)

    def _combined(self, columns: Floats, n_threads: int) -> Floats:
        """The raw scores from the predictions of the first members."""
        weights = self.weights[: columns.shape[1]]
        return combine_columns(self.combine, columns, weights, n_threads)[:, np.newaxis]

    def _member_names(self) -> str:
        return (
            listing(dict.fromkeys(type(member).__name__ for member in self.members)) or "no learner"
        )
