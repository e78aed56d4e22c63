"""AdaBoost: schemes, rounds, learners, and the two estimators."""
