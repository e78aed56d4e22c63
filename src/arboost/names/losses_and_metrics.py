"""Losses and metrics of scikit-learn, XGBoost, LightGBM and CatBoost, with their names here.

An alias of a metric is accepted; an unknown name of a loss is answered with the name here, since a
model file keeps it.
"""

from __future__ import annotations

from arboost.names.row import Row

__all__ = ["LOSSES", "METRICS"]

_RANKING = "Ranking is not available."
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
        _RANKING,
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
        _RANKING,
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
