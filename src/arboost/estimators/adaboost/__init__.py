"""AdaBoost: learners in sequence, on rows that the earlier learners have weighted."""
