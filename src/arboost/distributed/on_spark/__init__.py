"""A fit in a barrier stage of Spark, and predictions in tasks: one worker is one task."""
