"""Parameters of scikit-learn, XGBoost, LightGBM and CatBoost, with their names here.

The rows answer unknown names of parameters and fill the pages docs/from_*.md. A test compares them
with the signatures of the libraries.
"""

from __future__ import annotations

from arboost.names.row import Row
from arboost.names.run_parameters import RUN_PARAMETERS

__all__ = ["PARAMETERS", "SKLEARN_VALUES", "VALUES"]

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
