"""Wrong command lines: one line that says what to do, the exit code, and nothing left behind."""

import os
import shlex

import pytest

from support.command_line import run_failing

TRAIN = "train rows.csv -t label -q"

BAD_LINES = [
    # commands and options
    ("trainn rows.csv", 2, "Did you mean 'train'?"),
    ("frobnicate", 2, "Use one of train, predict"),
    ("--vresion", 2, "No such option"),
    ("train", 2, "DATA"),
    ("train rows.csv", 2, "--target"),
    ("predict labels.arb rows.csv", 2, "--output"),
    ("predict labels.arb", 2, "DATA"),
    ("completion tcsh", 2, "bash"),
    (f"{TRAIN} --holdut 0.2", 2, "Did you mean --holdout?"),
    (f"{TRAIN} --holdout 1.5", 2, "--holdout"),
    (f"{TRAIN} --holdout half", 2, "--holdout"),
    (f"{TRAIN} --model boosting", 2, "gradient_boosting"),
    (f"{TRAIN} --task rank", 2, "classification"),
    (f"{TRAIN} --task ranking", 2, "--qid COLUMN"),
    (f"{TRAIN} --truncation-level 5", 2, "--qid COLUMN"),
    (f"{TRAIN} --qid city --task regression", 2, "--groups"),
    (f"{TRAIN} --qid city --groups w", 2, "leave --groups out"),
    (f"{TRAIN} --qid city --time-column when", 2, "leave --time-column out"),
    (f"{TRAIN} --qid city --model random_forest", 2, "--model gradient_boosting"),
    (f"{TRAIN} --qid label", 2, "also the target"),
    (f"{TRAIN} --folds 3 --holdout 0.2", 2, "use one of them"),
    (f"{TRAIN} --folds 1", 2, "from 2 to"),
    (f"{TRAIN} --folds 3 --refit", 2, "always ends on all rows"),
    (f"{TRAIN} --holdout 0 --refit", 2, "leave it out"),
    (f"{TRAIN} --time-column when --groups city", 2, "use one of them"),
    (f"{TRAIN} --weight label", 2, "also the target"),
    (f"{TRAIN} --ignore label", 2, "also the target"),
    (f"{TRAIN} --holdout nan", 2, "from 0 to below 1"),
    (f"{TRAIN} --holdout 0.001", 2, "both need 2"),
    (f"{TRAIN} --folds 301", 2, "from 2 to 150"),
    (f"{TRAIN} --groups city --folds 4", 2, "groups stay whole, and there are 3"),
    (f"{TRAIN} --weight city", 3, "Weights must be numbers"),
    (f"{TRAIN} --ignore size,city,id,when,price,w", 3, "Add features"),
    ("train rows.csv -q -t ''", 3, "Its columns are id, size"),
    ("train rows.csv -t labels", 3, "Did you mean 'label'?"),  # before the table is read
    ("completion", 2, "bash, zsh, fish."),
    ("completion bash zsh", 2, "unexpected extra argument"),
    # parameters
    (f"{TRAIN} --learning-rat 0.1", 2, "Did you mean --learning-rate?"),
    (f"{TRAIN} --eta 0.1", 2, "--learning-rate"),
    (f"{TRAIN} --learning-rate", 2, "requires a value"),
    (f"{TRAIN} --learning-rate fast", 2, "learning_rate='fast'"),
    (f"{TRAIN} --learning-rate -1", 2, "above 0"),
    (f"{TRAIN} --n-estimators 2.5", 2, "an integer of at least 1"),
    (f"{TRAIN} --grow-policy leafwize", 2, "leafwise"),
    (f"{TRAIN} --loss squared_error", 3, "loss=squared_error is for regression"),
    (f"{TRAIN} --loss squared_error --task classification", 2, "regressor"),
    (f"{TRAIN} --loss poisson --class-weight balanced", 3, "loss=poisson is for regression"),
    (f"{TRAIN} --bundling=maybe", 2, "True or False"),
    (f"{TRAIN} --model voting --set random_state=first", 2, "random_state='first'"),
    (f"{TRAIN} --set learning_rate", 2, "name=value"),
    (f"{TRAIN} --set lerning_rate=0.1", 2, "Did you mean --learning-rate?"),
    (f"{TRAIN} --set gamma=1 --gamma 2", 2, "set twice"),
    (f"{TRAIN} --max-depth [3", 2, "max_depth='[3'"),
    (f"{TRAIN} --monotone-constraints '{{size = 3}}'", 2, "-1, 0 or 1"),
    (f"{TRAIN} --monotone-constraints '{{colour = 1}}'", 2, "colour"),
    (f"{TRAIN} --eval-metric accurac", 2, "accuracy"),
    (f"{TRAIN} --verbose 0", 2, "--quiet"),
    (f"{TRAIN} --warm-start", 2, "trains once"),
    (f"{TRAIN} -m random_forest --subsample 0.5", 2, "not a parameter of random_forest"),
    (f"{TRAIN} -m stacking --set estimators=forest,boosting", 2, "is not a model"),
    (f"{TRAIN} --jobs 0", 2, "n_jobs=0"),
    (f"{TRAIN} --jobs 2 --n-jobs 1", 2, "contradict"),
    (f"{TRAIN} --seed -1", 2, "random_state=-1"),
    (f"{TRAIN} --device gpu", 2, "cuda"),
    (f"{TRAIN} -m bagging --device cuda", 2, "not a parameter of bagging"),
    (f"{TRAIN} --config missing.toml", 2, "missing.toml"),
    (f"{TRAIN} --memory-limit 1potato", 2, "memory_limit"),
    (f"{TRAIN} --memory-limit 1GB --folds 3", 2, "needs the table in memory"),
    (f"{TRAIN} --memory-limit 1GB --drop-missing-target", 2, "needs the table in memory"),
    (f"{TRAIN} --memory-limit 1GB -m stacking", 2, "needs the table in memory"),
    (f"{TRAIN} -o model.pkl", 2, ".arb or .json"),
    (f"{TRAIN} -o ''", 2, ".arb or .json"),
    (f"{TRAIN} -m stacking -o model.json", 2, "which has no JSON form"),
    ("tune rows.csv -t label -q --trials 1 -m voting -o m.json", 2, "which has no JSON form"),
    (f"{TRAIN} --config .", 2, "Is a directory"),
    (f"{TRAIN} --config rows.csv", 2, "are not TOML"),
    (f"{TRAIN} --max-depth 99999999999999999999", 2, "2147483647"),
    (f"{TRAIN} --class-weight '{{high=1, low=-1}}'", 2, "above 0"),
    ("tune rows.csv -t label -q --trials 1 --metric rmse", 2, "rmse"),
    ("tune rows.csv -t label -q --trials 1 --seed -1", 2, "random_state=-1"),
    ("tune rows.csv -t label -q --seconds nan", 2, "above 0"),
    ("compare rows.csv -t label --models ''", 2, "names no model"),
    ("compare rows.csv -t label -q --models nope", 2, "is not a model"),
    # inputs and outputs
    ("train http://example.org/rows.csv -t y -q", 3, "Download it first"),
    ("train rows.csv rows.csv -t label -q", 3, "there twice"),
    ("predict rows.csv labels.arb -o out.csv -q", 4, "not an arboost model"),
    ("predict missing.arb rows.csv -o out.csv -q", 4, "There is no model file 'missing.arb'"),
    ("predict labels.arb rows.csv -o out.csv -j 0 -q", 2, "n_jobs=0"),
    ("predict labels.arb rows.csv -o '' -q", 2, "unknown kind"),
    ("evaluate labels.arb rows.csv -t size -q", 2, "a feature of the model. Its target is 'label'"),
    ("evaluate labels.arb rows.csv --weight label -q", 2, "also the target"),
    ("evaluate labels.arb rows.csv --weight city -q", 3, "Weights must be numbers"),
    ("evaluate prices.arb rows.csv --weight size -q", 3, "the first of them row 4"),
    ("explain labels.arb rows.csv -o out.html -q", 2, "Use another name."),
    ("report labels.arb rows.csv -o '' -q", 2, ".html"),
    ("report labels.arb rows.csv --weight city -q", 3, "Weights must be numbers"),
    ("report labels.arb rows.csv --compare prices.arb -q", 3, "the same target"),
    ("inspect labels.arb --delimiter ; -q", 2, "is a model file"),
    ("inspect labels.arb --date-format iso -q", 2, "is a model file"),
    ("inspect rows.csv --date-format day-first -q", 2, "dayfirst"),
    ("train - -t y -q", 2, "--format"),
    ("train - rows.csv -t y -q --format csv", 2, "cannot be mixed"),
    ("predict labels.arb rows.csv -o out.txt -q", 2, "unknown kind"),
    ("predict labels.arb rows.csv -o out.csv --proba --raw -q", 2, "use one of them"),
    ("predict prices.arb rows.csv -o out.csv --proba -q", 2, "needs a classifier"),
    ("predict labels.arb rows.csv -o - --json -q", 2, "standard output"),
    ("predict labels.arb rows.csv -o out.csv -q --device tpu", 2, "device='tpu'"),
    ("evaluate labels.arb rows.csv -q --metric accurac", 2, "accuracy"),
    ("evaluate labels.arb rows.csv -q --metric rmse", 2, "rmse"),
    ("explain labels.arb --row 1 -q", 2, "add its path"),
    ("explain labels.arb rows.csv --row 1000 -q", 2, "the rows 0 to 299"),
    ("explain labels.arb rows.csv --row 1 --class tall -q", 2, "high, low"),
    ("explain labels.arb rows.csv --class high -q", 2, "--row"),
    ("inspect rows.csv --tree 0 -q", 2, "model files"),
    ("inspect labels.arb --tree 99 -q", 2, "99"),
    ("convert labels.arb labels.txt", 2, ".arb or .json or .h or .onnx"),
    ("convert labels.arb other.json --name x", 2, "--name"),
]


@pytest.mark.parametrize(("line", "code", "part"), BAD_LINES, ids=[one[0] for one in BAD_LINES])
def test_one_line_and_nothing_left(line, code, part, here):
    before = sorted(os.listdir(here))
    found, message = run_failing(*shlex.split(line))
    assert found == code, message
    assert part in message
    assert sorted(os.listdir(here)) == before


def test_advice_is_for_the_command_line(here):
    """Values of Python, which no option takes, are not named."""
    for name in ("rmse", "zzzzzz"):
        _, message = run_failing("evaluate", "labels.arb", "rows.csv", "--metric", name, "-q")
        assert "arboost.Metric" not in message
        assert "log_loss" in message
