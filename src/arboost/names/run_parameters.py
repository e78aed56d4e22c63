"""Arguments of stopping, validation, threads and prediction, with their names here."""

from __future__ import annotations

from arboost.names.row import Row

__all__ = ["PREDICTION", "RUN_PARAMETERS"]

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
