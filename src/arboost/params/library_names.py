"""Names of parameters, losses and metrics in scikit-learn, XGBoost, LightGBM and CatBoost.

The rows answer unknown names and fill the pages docs/from_*.md. A test compares them with the
signatures of the libraries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Titles of the libraries, by the fields of a row.
LIBRARIES = {
    "sklearn": "scikit-learn",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
}


@dataclass(frozen=True)
class Row:
    """Names for one idea; several names are separated by spaces.

    Attributes
    ----------
    ours : str
        Names here: the first that an estimator has is its name there; "" where there is none.
    note : str
        Sentence on the use: another range of values, or the way to the same end.
    sklearn, xgboost, lightgbm, catboost : str
        Names of the libraries.
    """

    ours: str = ""
    note: str = ""
    sklearn: str = ""
    xgboost: str = ""
    lightgbm: str = ""
    catboost: str = ""

    def names(self, library: str | None = None) -> list[str]:
        """Return the names of one library, or of all of them."""
        chosen = LIBRARIES if library is None else (library,)
        return list(dict.fromkeys(" ".join(getattr(self, one) for one in chosen).split()))


def by_name(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the row of each name; the first row of a name counts.

    Examples
    --------
    >>> by_name([Row("n_jobs", xgboost="nthread", catboost="thread_count")])["nthread"].ours
    'n_jobs'
    """
    found: dict[str, Row] = {}
    for row in rows:
        for name in row.names():
            found.setdefault(name, row)
    return found


_FILES = "Leave it out: a fit writes no file but its checkpoint, fit(checkpoint=path)."
_ONE_SEED = "Leave it out: random_state is the seed of every random choice."
_ALWAYS = "Leave it out: it is always so."
_MEMORY = (
    'It limits fits on files and other batches, such as "2GB"; a table in memory has no limit.'
)
_CLUSTER = "arboost.dask, arboost.ray and arboost.spark train on several machines: DistributedFit."
_SCORE = "The raw scores come from predict_raw of the fitted model, model_."

_STOPPING = (
    Row(
        "n_iter_no_change",
        "A number of rounds; None trains all rounds.",
        sklearn="n_iter_no_change early_stopping",
        xgboost="early_stopping_rounds",
        lightgbm="early_stopping_rounds early_stopping_round stopping_rounds early_stopping "
        "n_iter_no_change",
        catboost="early_stopping_rounds od_wait",
    ),
    Row("tol", sklearn="tol", lightgbm="early_stopping_min_delta min_delta"),
    Row("", "Leave it out: n_iter_no_change is the only rule.", catboost="od_type od_pval"),
    Row(
        "validation_fraction",
        "It is for early stopping without X_val.",
        sklearn="validation_fraction",
        catboost="eval_fraction",
    ),
    Row(
        "eval_metric",
        "The first metric stops the fit; docs/reference/metrics.md lists them.",
        sklearn="scoring",
        xgboost="eval_metric custom_metric feval",
        lightgbm="eval_metric metric metrics metric_types feval",
        catboost="eval_metric custom_metric custom_loss",
    ),
    Row(
        "",
        "Leave it out: every metric knows whether greater is better, and the first one stops.",
        xgboost="maximize",
        lightgbm="first_metric_only auc_mu_weights multi_error_top_k",
    ),
    Row("X_val", sklearn="X_val"),
    Row("y_val", sklearn="y_val"),
    Row("sample_weight_val", sklearn="sample_weight_val"),
    Row(
        "eval_set",
        "The last set stops the fit early; X_val and y_val are the short form.",
        xgboost="eval_set evals",
        lightgbm="eval_set valid_sets eval_X eval_y valid",
        catboost="eval_set",
    ),
    Row("eval_names", lightgbm="eval_names valid_names"),
    Row(
        "eval_set",
        "Weights are the third entry of a set, (X, y, weight).",
        xgboost="sample_weight_eval_set",
        lightgbm="eval_sample_weight",
    ),
    Row(
        "",
        "Leave it out: validation rows have the class weights of the training rows.",
        lightgbm="eval_class_weight",
    ),
    Row("callbacks", sklearn="monitor", xgboost="callbacks", lightgbm="callbacks"),
    Row("callbacks", catboost="callbacks callback"),
    Row(
        "",
        "Leave it out: with n_iter_no_change the model ends with its best round.",
        catboost="use_best_model best_model_min_trees",
    ),
    Row(
        "init_model",
        "It is a fitted estimator, its model_, or the path of a model file.",
        xgboost="xgb_model",
        lightgbm="init_model input_model",
        catboost="init_model",
    ),
    Row(
        "offset",
        "It is an array, or the name of a column; the base score is added to it.",
        xgboost="base_margin",
        lightgbm="init_score",
        catboost="baseline",
    ),
    Row(
        "eval_set",
        "Offsets are the fourth entry of a set, (X, y, weight, offset).",
        xgboost="base_margin_eval_set",
        lightgbm="eval_init_score",
    ),
    Row(
        "checkpoint",
        "It is the path of a file.",
        lightgbm="snapshot_freq save_period",
        catboost="save_snapshot snapshot_file snapshot_interval",
    ),
    Row(
        "X",
        "Pass the table itself, and the target as y.",
        xgboost="dtrain",
        lightgbm="train_set",
        catboost="data",
    ),
    Row("folds", xgboost="folds nfold", lightgbm="folds nfold", catboost="fold_count"),
    Row("metrics", xgboost="metrics", lightgbm="metrics"),
    Row("return_models", lightgbm="return_cvbooster", catboost="return_models"),
)

_RUN = (
    Row(
        "n_jobs",
        "None takes all threads that this process may use.",
        sklearn="n_jobs",
        xgboost="n_jobs nthread",
        lightgbm="n_jobs num_threads num_thread nthread nthreads",
        catboost="thread_count",
    ),
    Row(
        "random_state",
        sklearn="random_state",
        xgboost="random_state seed",
        lightgbm="random_state seed random_seed",
        catboost="random_state random_seed",
    ),
    Row(
        "",
        _ONE_SEED,
        lightgbm="bagging_seed feature_fraction_seed drop_seed data_random_seed",
    ),
    Row(
        "verbose",
        "True draws a progress bar, False draws none.",
        sklearn="verbose",
        xgboost="verbosity verbose verbose_eval silent",
        lightgbm="verbose verbosity verbose_eval",
        catboost="verbose silent logging_level verbose_eval metric_period",
    ),
    Row(
        "",
        "evals_result_ has the curves of every fit; plots.plot_learning_curves draws them.",
        xgboost="evals_result",
        lightgbm="eval_train_metric is_provide_training_metric metric_freq keep_training_booster",
        catboost="plot plot_file log_cout log_cerr",
    ),
    Row(
        "",
        "importances(kind) of the fitted model has every kind.",
        xgboost="importance_type",
        lightgbm="importance_type saved_feature_importance_type",
    ),
    Row(
        "device",
        'device="cuda" grows the trees of boosters, forests, decision trees and AdaBoost on a GPU.',
        xgboost="device gpu_id predictor",
        lightgbm="device device_type gpu_device_id gpu_platform_id gpu_use_dp num_gpu "
        "gpu_device_id_list",
        catboost="task_type devices device_config gpu_ram_part pinned_memory_size "
        "gpu_cat_features_storage data_partition",
    ),
    Row(
        "",
        _CLUSTER,
        lightgbm="num_machines num_machine machines workers nodes machine_list_filename "
        "machine_list_file machine_list mlist local_listen_port local_port port time_out "
        "pre_partition is_pre_partition tree_learner",
    ),
    Row(
        "",
        _FILES,
        lightgbm="output_model save_binary two_round",
        catboost="train_dir allow_writing_files name metadata",
    ),
    Row("memory_limit", _MEMORY, catboost="used_ram_limit"),
    Row(
        "",
        "Leave it out: fit(memory_limit=...) limits histograms, too, in fits on files.",
        lightgbm="histogram_pool_size",
    ),
    Row(
        "",
        _ALWAYS,
        xgboost="validate_parameters validate_features",
        sklearn="check_input",
        lightgbm="validate_features deterministic force_row_wise force_col_wise is_enable_sparse",
        catboost="dev_score_calc_obj_block_size",
    ),
    Row("", "Order the rows by time and use validation_split.", catboost="has_time"),
    Row(
        "",
        "Pass the parameters by name: GradientBoostingClassifier(**params).",
        xgboost="params",
        lightgbm="params",
        catboost="params",
    ),
    Row(
        "",
        "Split with scikit-learn and pass the splitter as folds.",
        xgboost="stratified shuffle",
        lightgbm="stratified shuffle",
        catboost="stratified shuffle",
    ),
)

PREDICTION = (
    Row(
        "rounds",
        "predict(X, rounds=100) uses the first 100 rounds.",
        xgboost="iteration_range ntree_limit",
        lightgbm="num_iteration start_iteration",
        catboost="ntree_end ntree_start",
    ),
    Row("", _SCORE, xgboost="output_margin", lightgbm="raw_score", catboost="prediction_type"),
    Row("", "apply(X) returns the leaves.", xgboost="pred_leaf", lightgbm="pred_leaf"),
    Row(
        "",
        "shap_values(X) returns the contributions.",
        xgboost="pred_contribs pred_interactions approx_contribs",
        lightgbm="pred_contrib",
    ),
)

RUN_PARAMETERS = (*_STOPPING, *_RUN, *PREDICTION)

_BY_TYPE = "Strings and categorical types are categories without it."
_CUSTOM_BINS = "Leave it out, or change the number of bins, max_bins."
_TARGET_ENCODING = (
    "Leave it out: category_encoding has two rules for categories of more than 100 levels."
)
_TEXT = "Leave it out, and turn texts into numbers first."
_RANKING = "Ranking is not available: leave it out."
_PENALTY = "Leave it out: features have no penalties."

_BOOSTING = (
    Row(
        "n_estimators",
        sklearn="n_estimators max_iter",
        xgboost="n_estimators num_boost_round num_round nrounds",
        lightgbm="n_estimators num_iterations num_iteration num_boost_round num_round num_rounds "
        "num_trees num_tree n_iter nrounds max_iter",
        catboost="n_estimators iterations num_boost_round num_trees",
    ),
    Row(
        "learning_rate",
        sklearn="learning_rate",
        xgboost="learning_rate eta",
        lightgbm="learning_rate eta shrinkage_rate",
        catboost="learning_rate eta",
    ),
    Row(
        "loss",
        'The loss has a name such as "log_loss", or is an arboost.CustomLoss.',
        sklearn="loss",
        xgboost="objective obj",
        lightgbm="objective objective_type application app",
        catboost="loss_function objective",
    ),
    Row(
        "alpha",
        'It is for loss="quantile" and loss="huber".',
        sklearn="alpha quantile",
        xgboost="quantile_alpha",
        lightgbm="alpha",
    ),
    Row("tweedie_power", xgboost="tweedie_variance_power", lightgbm="tweedie_variance_power"),
    Row(
        "",
        'Use rate_drop above 0 for DART, sampling_method="goss" for GOSS, and a forest of arboost '
        "such as RandomForestClassifier for a forest.",
        xgboost="booster",
        lightgbm="boosting_type boost",
        catboost="boosting_type",
    ),
    Row("base_score", xgboost="base_score"),
    Row(
        "",
        "Leave it out: base_score=None starts from the best constant.",
        sklearn="init",
        lightgbm="boost_from_average",
        catboost="boost_from_average",
    ),
    Row("num_parallel_tree", xgboost="num_parallel_tree"),
    Row(
        "scale_pos_weight",
        xgboost="scale_pos_weight",
        lightgbm="scale_pos_weight",
        catboost="scale_pos_weight",
    ),
    Row(
        "class_weight",
        'Use class_weight="balanced".',
        lightgbm="is_unbalance unbalance unbalanced_sets",
    ),
    Row(
        "class_weight",
        'Use a dict from labels to weights, or "balanced".',
        sklearn="class_weight",
        lightgbm="class_weight",
        catboost="class_weights auto_class_weights",
    ),
    Row("multi_strategy", xgboost="multi_strategy"),
    Row(
        "",
        "Leave it out: the classes are those of y.",
        xgboost="num_class",
        lightgbm="num_class num_classes",
        catboost="classes_count class_names allow_const_label target_border",
    ),
    Row("warm_start", "fit(init_model=model) continues another model.", sklearn="warm_start"),
    Row(
        "rate_drop",
        "DART: the share of the trees that a round drops.",
        xgboost="rate_drop",
        lightgbm="drop_rate",
    ),
    Row("skip_drop", xgboost="skip_drop", lightgbm="skip_drop"),
    Row("one_drop", xgboost="one_drop"),
    Row("sample_type", xgboost="sample_type", lightgbm="uniform_drop"),
    Row("normalize_type", xgboost="normalize_type", lightgbm="xgboost_dart_mode"),
    Row("", "Leave it out: rate_drop alone sets the number of dropped trees.", lightgbm="max_drop"),
    Row(
        "",
        "Leave it out: leaves take one Newton step.",
        lightgbm="reg_sqrt sigmoid fair_c poisson_max_delta_step objective_seed",
        catboost="leaf_estimation_iterations leaf_estimation_method leaf_estimation_backtracking "
        "score_function model_shrink_rate model_shrink_mode langevin diffusion_temperature "
        "posterior_sampling approx_on_full_history fold_permutation_block fold_len_multiplier "
        "random_strength random_score_type",
    ),
    Row(
        "",
        _RANKING,
        lightgbm="lambdarank_truncation_level lambdarank_norm label_gain eval_at group_column "
        "lambdarank_position_bias_regularization bagging_by_query",
        catboost="sampling_unit graph",
    ),
)

_TREES = (
    Row("tree_method", xgboost="tree_method"),
    Row(
        "max_depth",
        "None sets no limit; -1 and 0 are not allowed.",
        sklearn="max_depth",
        xgboost="max_depth",
        lightgbm="max_depth",
        catboost="max_depth depth",
    ),
    Row(
        "max_leaves max_leaf_nodes",
        "None sets no limit.",
        sklearn="max_leaf_nodes",
        xgboost="max_leaves",
        lightgbm="num_leaves num_leaf max_leaves max_leaf max_leaf_nodes",
        catboost="max_leaves num_leaves",
    ),
    Row("grow_policy", xgboost="grow_policy", catboost="grow_policy"),
    Row(
        "min_samples_leaf",
        "It is a number of rows.",
        sklearn="min_samples_leaf",
        lightgbm="min_child_samples min_data_in_leaf min_data min_data_per_leaf",
        catboost="min_data_in_leaf min_child_samples",
    ),
    Row(
        "min_child_weight",
        xgboost="min_child_weight",
        lightgbm="min_child_weight min_sum_hessian_in_leaf min_sum_hessian min_hessian "
        "min_sum_hessian_per_leaf",
    ),
    Row("", "Use min_samples_leaf instead.", sklearn="min_samples_split"),
    Row("", "Use min_child_weight, a sum of hessians.", sklearn="min_weight_fraction_leaf"),
    Row("", "Use gamma, the smallest gain of a split.", sklearn="min_impurity_decrease ccp_alpha"),
    Row("", "Leave it out: gains are those of the loss.", sklearn="criterion splitter"),
    Row(
        "gamma",
        "It is the smallest gain of a split.",
        xgboost="gamma min_split_loss",
        lightgbm="min_split_gain min_gain_to_split",
    ),
    Row(
        "reg_lambda",
        sklearn="l2_regularization",
        xgboost="reg_lambda lambda",
        lightgbm="reg_lambda lambda_l2 lambda l2_regularization",
        catboost="reg_lambda l2_leaf_reg",
    ),
    Row("reg_alpha", xgboost="reg_alpha", lightgbm="reg_alpha lambda_l1 l1_regularization"),
    Row(
        "max_delta_step",
        xgboost="max_delta_step",
        lightgbm="max_delta_step max_leaf_output max_tree_output",
    ),
    Row(
        "max_bins",
        sklearn="max_bins",
        xgboost="max_bin",
        lightgbm="max_bin",
        catboost="border_count max_bin",
    ),
    Row(
        "",
        _CUSTOM_BINS,
        lightgbm="subsample_for_bin bin_construct_sample_cnt min_data_in_bin max_bin_by_feature "
        "forcedbins_filename use_quantized_grad num_grad_quant_bins quant_train_renew_leaf "
        "stochastic_rounding",
        catboost="feature_border_type per_float_feature_quantization input_borders output_borders "
        "dev_efb_max_buckets fixed_binary_splits",
    ),
    Row("sketch_eps", xgboost="sketch_eps"),
    Row("bundling", lightgbm="enable_bundle bundle is_enable_bundle"),
    Row("max_conflict_rate", catboost="sparse_features_conflict_fraction"),
    Row(
        "",
        "Leave it out: leaves hold constants.",
        lightgbm="linear_tree linear_lambda path_smooth extra_trees extra_seed",
    ),
    Row(
        "monotone_constraints",
        'Use for example {"age": 1}.',
        sklearn="monotonic_cst",
        xgboost="monotone_constraints",
        lightgbm="monotone_constraints monotone_constraint mc monotonic_cst",
        catboost="monotone_constraints",
    ),
    Row(
        "",
        "Leave it out: monotone_constraints alone decides.",
        lightgbm="monotone_constraints_method monotone_penalty",
    ),
    Row(
        "interaction_constraints",
        sklearn="interaction_cst",
        xgboost="interaction_constraints",
        lightgbm="interaction_constraints",
    ),
    Row(
        "",
        _PENALTY,
        xgboost="feature_weights",
        lightgbm="feature_contri feature_penalty cegb_tradeoff cegb_penalty_split "
        "cegb_penalty_feature_lazy cegb_penalty_feature_coupled forcedsplits_filename",
        catboost="feature_weights penalties_coefficient first_feature_use_penalties "
        "per_object_feature_penalties model_size_reg",
    ),
)

_SAMPLES = (
    Row(
        "subsample max_samples",
        sklearn="subsample",
        xgboost="subsample",
        lightgbm="subsample bagging_fraction bagging sub_row",
        catboost="subsample",
    ),
    Row(
        "",
        "Leave it out: subsample below 1 draws rows in every round.",
        lightgbm="subsample_freq bagging_freq pos_bagging_fraction neg_bagging_fraction "
        "pos_bagging neg_bagging",
        catboost="sampling_frequency bagging_temperature",
    ),
    Row(
        "sampling_method",
        'Use "uniform", "gradient_based" or "goss".',
        xgboost="sampling_method",
        lightgbm="data_sample_strategy",
        catboost="bootstrap_type mvs_reg",
    ),
    Row("top_rate", lightgbm="top_rate"),
    Row("other_rate", lightgbm="other_rate"),
    Row(
        "colsample_bytree",
        xgboost="colsample_bytree",
        lightgbm="colsample_bytree feature_fraction sub_feature",
    ),
    Row("colsample_bylevel", xgboost="colsample_bylevel", catboost="colsample_bylevel rsm"),
    Row(
        "max_features colsample_bynode",
        "It is a share of the features.",
        sklearn="max_features",
        xgboost="colsample_bynode",
        lightgbm="colsample_bynode feature_fraction_bynode sub_feature_bynode",
    ),
)

_COLUMNS = (
    Row(
        "categorical_features",
        _BY_TYPE,
        sklearn="categorical_features",
        lightgbm="categorical_feature cat_feature cat_column categorical_column",
        catboost="cat_features",
    ),
    Row("", _BY_TYPE, xgboost="enable_categorical feature_types"),
    Row("max_cat_to_onehot", xgboost="max_cat_to_onehot", lightgbm="max_cat_to_onehot"),
    Row("max_cat_to_onehot", "It counts the levels in a node.", catboost="one_hot_max_size"),
    Row("max_cat_threshold", xgboost="max_cat_threshold", lightgbm="max_cat_threshold"),
    Row("min_cat_weight", "It is a sum of hessians.", lightgbm="min_data_per_group"),
    Row("cat_smooth", lightgbm="cat_smooth"),
    Row("cat_l2", lightgbm="cat_l2"),
    Row(
        "category_encoding",
        'It is for categories of more than 100 levels: "groups" or "mean".',
        catboost="simple_ctr per_feature_ctr",
    ),
    Row(
        "",
        _TARGET_ENCODING,
        catboost="counter_calc_method ctr_leaf_count_limit store_all_simple_ctr "
        "max_ctr_complexity combinations_ctr ctr_description "
        "ctr_target_border_count ctr_history_unit final_ctr_computation_mode",
    ),
    Row(
        "",
        _TEXT,
        catboost="text_features tokenizers dictionaries feature_calcers text_processing "
        "embedding_features",
    ),
    Row("missing", xgboost="missing"),
    Row(
        "missing",
        "missing=0 takes zeros for missing values; NaN always is one.",
        lightgbm="use_missing zero_as_missing",
        catboost="nan_mode",
    ),
    Row(
        "",
        "Leave it out: names come from the data frame, and columns are dropped there.",
        lightgbm="feature_name ignore_column feature_pre_filter label_column weight_column",
        catboost="ignored_features column_description",
    ),
)

PARAMETERS = (*_BOOSTING, *_TREES, *_SAMPLES, *_COLUMNS, *RUN_PARAMETERS)

# Values of parameters that have the name of the library's: (parameter, value) -> value here.
VALUES = {
    ("boosting", "gbdt"): "newton",
    ("boosting", "gbtree"): "newton",
    ("grow_policy", "lossguide"): "leafwise",
    ("grow_policy", "Lossguide"): "leafwise",
    ("grow_policy", "Depthwise"): "depthwise",
    ("tree_method", "auto"): "hist",
    ("tree_method", "gpu_hist"): "hist",
    ("sampling_method", "MVS"): "gradient_based",
    ("sampling_method", "Bernoulli"): "uniform",
    ("criterion", "mse"): "squared_error",
    ("criterion", "mae"): "absolute_error",
    ("multi_strategy", "multi_output"): "multi_output_tree",
}

# The same of scikit-learn, which the pages of the other libraries leave out.
SKLEARN_VALUES = {("algorithm", "SAMME"): "discrete", ("algorithm", "SAMME.R"): "real"}

_NO_RANKING = "Ranking is not available."
_SURVIVAL = "Survival analysis is not available."
_CUSTOM = "Write it as an arboost.CustomLoss."
_TARGETS = (
    "A booster has one target: fit one for each column, for example by sklearn.multioutput, or use "
    "a forest such as RandomForestRegressor, which takes several."
)
LOSSES = (
    Row(
        "squared_error",
        sklearn="squared_error ls",
        xgboost="reg:squarederror reg:linear",
        lightgbm="regression regression_l2 l2 mean_squared_error mse l2_root "
        "root_mean_squared_error rmse",
        catboost="RMSE",
    ),
    Row(
        "absolute_error",
        sklearn="absolute_error lad",
        xgboost="reg:absoluteerror",
        lightgbm="regression_l1 l1 mean_absolute_error mae",
        catboost="MAE",
    ),
    Row(
        "huber",
        "alpha is the share of rows that are no outliers.",
        sklearn="huber",
        xgboost="reg:pseudohubererror",
        lightgbm="huber",
        catboost="Huber",
    ),
    Row(
        "quantile",
        "alpha is the quantile.",
        sklearn="quantile",
        xgboost="reg:quantileerror",
        lightgbm="quantile",
        catboost="Quantile MultiQuantile",
    ),
    Row(
        "poisson",
        sklearn="poisson",
        xgboost="count:poisson",
        lightgbm="poisson",
        catboost="Poisson",
    ),
    Row("gamma", sklearn="gamma", xgboost="reg:gamma", lightgbm="gamma"),
    Row(
        "tweedie",
        "tweedie_power is the power.",
        xgboost="reg:tweedie",
        lightgbm="tweedie",
        catboost="Tweedie",
    ),
    Row(
        "log_loss",
        "It is the loss of two classes and of more.",
        sklearn="log_loss deviance",
        xgboost="binary:logistic multi:softmax multi:softprob binary:logitraw",
        lightgbm="binary multiclass softmax multiclassova",
        catboost="Logloss MultiClass MultiClassOneVsAll",
    ),
    Row("exponential", sklearn="exponential"),
    Row(
        "",
        _CUSTOM,
        xgboost="binary:hinge reg:squaredlogerror reg:logistic",
        lightgbm="fair mape mean_absolute_percentage_error cross_entropy xentropy "
        "cross_entropy_lambda xentlambda",
        catboost="CrossEntropy MAPE Lq LogCosh Expectile LogLinQuantile Focal",
    ),
    Row(
        "",
        _TARGETS,
        catboost="MultiRMSE MultiRMSEWithMissingValues MultiLogloss MultiCrossEntropy",
    ),
    Row(
        "",
        'Use loss="quantile" with several alpha: an interval shows how certain a value is.',
        catboost="RMSEWithUncertainty",
    ),
    Row(
        "",
        _NO_RANKING,
        xgboost="rank:pairwise rank:ndcg rank:map",
        lightgbm="lambdarank rank_xendcg xendcg",
        catboost="PairLogit PairLogitPairwise YetiRank YetiRankPairwise QueryRMSE QuerySoftMax "
        "LambdaMart StochasticRank",
    ),
    Row("", _SURVIVAL, xgboost="survival:cox survival:aft", catboost="Cox SurvivalAft"),
)

METRICS = (
    Row(
        "rmse",
        sklearn="neg_root_mean_squared_error root_mean_squared_error",
        xgboost="rmse",
        lightgbm="rmse root_mean_squared_error l2_root",
        catboost="RMSE",
    ),
    Row(
        "mse",
        sklearn="neg_mean_squared_error mean_squared_error squared_error",
        lightgbm="l2 mse mean_squared_error regression regression_l2",
    ),
    Row(
        "mae",
        sklearn="neg_mean_absolute_error mean_absolute_error absolute_error",
        xgboost="mae",
        lightgbm="l1 mae mean_absolute_error regression_l1",
        catboost="MAE",
    ),
    Row(
        "mape",
        sklearn="neg_mean_absolute_percentage_error mean_absolute_percentage_error",
        xgboost="mape",
        lightgbm="mape mean_absolute_percentage_error",
        catboost="MAPE",
    ),
    Row("smape", catboost="SMAPE"),
    Row(
        "rmsle",
        sklearn="neg_root_mean_squared_log_error root_mean_squared_log_error",
        xgboost="rmsle",
    ),
    Row("msle", sklearn="neg_mean_squared_log_error mean_squared_log_error", catboost="MSLE"),
    Row(
        "median_absolute_error",
        sklearn="neg_median_absolute_error median_absolute_error",
        catboost="MedianAbsoluteError",
    ),
    Row("max_error", sklearn="neg_max_error max_error"),
    Row("r2", sklearn="r2 r2_score", catboost="R2"),
    Row("explained_variance", sklearn="explained_variance explained_variance_score"),
    Row(
        "poisson_deviance",
        "The likelihoods of XGBoost and LightGBM differ by a factor and a constant.",
        sklearn="neg_mean_poisson_deviance mean_poisson_deviance",
        xgboost="poisson-nloglik",
        lightgbm="poisson",
        catboost="Poisson",
    ),
    Row(
        "gamma_deviance",
        "The likelihoods of XGBoost and LightGBM differ by a factor and a constant.",
        sklearn="neg_mean_gamma_deviance mean_gamma_deviance",
        xgboost="gamma-deviance gamma-nloglik",
        lightgbm="gamma_deviance gamma",
    ),
    Row(
        "tweedie_deviance",
        'It is for loss="tweedie", and has its power.',
        lightgbm="tweedie",
        catboost="Tweedie",
    ),
    Row(
        "quantile",
        'It is the metric of loss="quantile", with its alpha.',
        xgboost="quantile",
        lightgbm="quantile",
        catboost="Quantile MultiQuantile",
    ),
    Row("huber", 'It is the metric of loss="huber".', lightgbm="huber", catboost="Huber"),
    Row(
        "log_loss",
        sklearn="neg_log_loss log_loss",
        xgboost="logloss mlogloss",
        lightgbm="binary_logloss multi_logloss binary multiclass softmax multiclassova",
        catboost="Logloss MultiClass",
    ),
    Row(
        "auc",
        sklearn="roc_auc roc_auc_score roc_auc_ovr_weighted",
        xgboost="auc",
        lightgbm="auc",
        catboost="AUC",
    ),
    Row(
        "average_precision",
        sklearn="average_precision average_precision_score",
        xgboost="aucpr",
        lightgbm="average_precision",
        catboost="PRAUC",
    ),
    Row("accuracy", sklearn="accuracy accuracy_score f1_micro", catboost="Accuracy"),
    Row(
        "error",
        sklearn="zero_one_loss",
        xgboost="error merror",
        lightgbm="binary_error multi_error",
        catboost="ZeroOneLoss HammingLoss",
    ),
    Row("brier", sklearn="neg_brier_score brier_score_loss", catboost="BrierScore"),
    Row(
        "balanced_accuracy",
        sklearn="balanced_accuracy balanced_accuracy_score",
        catboost="BalancedAccuracy",
    ),
    Row("f1", sklearn="f1 f1_score", catboost="F1"),
    Row("f1_macro", sklearn="f1_macro"),
    Row("f1_weighted", sklearn="f1_weighted", catboost="TotalF1"),
    Row("precision", sklearn="precision precision_score", catboost="Precision"),
    Row("precision_macro", sklearn="precision_macro"),
    Row("precision_weighted", sklearn="precision_weighted"),
    Row("recall", sklearn="recall recall_score", catboost="Recall"),
    Row("recall_macro", sklearn="recall_macro"),
    Row("recall_weighted", sklearn="recall_weighted"),
    Row("matthews", sklearn="matthews_corrcoef", catboost="MCC"),
    Row("kappa", sklearn="cohen_kappa_score", catboost="Kappa"),
    Row(
        "",
        _NO_RANKING,
        sklearn="ndcg_score",
        xgboost="ndcg map pre",
        lightgbm="ndcg map lambdarank rank_xendcg mean_average_precision",
        catboost="NDCG DCG MAP MRR ERR PFound QueryAUC PrecisionAt RecallAt AverageGain",
    ),
    Row("", _TARGETS, catboost="MultiRMSE MultiRMSEWithMissingValues MultiCrossEntropy"),
    Row(
        "",
        _SURVIVAL,
        xgboost="cox-nloglik aft-nloglik interval-regression-accuracy",
        catboost="Cox SurvivalAft",
    ),
    Row(
        "",
        "Pass a function of (y, score, weight), or an arboost.Metric.",
        xgboost="mphe tweedie-nloglik",
        lightgbm="fair auc_mu cross_entropy xentropy kldiv kullback_leibler cross_entropy_lambda",
        catboost="CrossEntropy Expectile LogCosh Lq HingeLoss "
        "BalancedErrorRate WKappa NumErrors FairLoss LogLikelihoodOfPrediction CtrFactor "
        "NormalizedGini Combination",
    ),
)
